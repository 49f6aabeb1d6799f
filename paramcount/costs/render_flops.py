"""The FLOPs of a model as a table: one row per component, while decoding and for a prompt or a pass."""

from __future__ import annotations

from paramcount.costs.flops import Flops
from paramcount.costs.roofline import Bound
from paramcount.output.numbers import format_bytes, format_scaled
from paramcount.output.tables import Column, Table

UNITS = ((" YFLOPs", 10**24), (" ZFLOPs", 10**21), (" EFLOPs", 10**18), (" PFLOPs", 10**15), (" TFLOPs", 10**12),
         (" GFLOPs", 10**9), (" MFLOPs", 10**6))  # fmt: skip

TOKENS = (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3))
OPERATIONS = (("P", 10**15), ("T", 10**12), ("G", 10**9), ("M", 10**6), ("K", 10**3))


def format_flops(count: int) -> str:
    """FLOPs with three significant digits.

    >>> format_flops(19_300_000_000), format_flops(6 * 8_030_261_248 * 15 * 10**12)
    ('19.3 GFLOPs', '723 ZFLOPs')
    """
    return format_scaled(count, UNITS) if count >= UNITS[-1][1] else f"{count:,} FLOPs"


def build_flops_table(flops: Flops) -> Table:
    """One row per component and the total; for a model that decodes no tokens, those of a pass alone."""
    names = dict.fromkeys((*flops.by_component, *flops.prefill_by_component))
    columns = [
        Column("component", "component", right=False),
        Column("flops_per_token", "per decoded token", show=format_flops),
        Column("prefill_flops", f"{name_pass(flops)} of {flops.context:,} tokens", show=format_flops),
    ]
    rows = [[name, flops.by_component.get(name, 0), flops.prefill_by_component.get(name, 0)] for name in names]
    rows.append(["total", flops.flops_per_token, flops.prefill_flops])
    if flops.flops_per_token is None:
        columns, rows = [columns[0], columns[2]], [[name, of_pass] for name, _, of_pass in rows]
    return Table(
        columns,
        rows,
        flops.to_dict(),
        above=[f"{flops.name}   matmuls, 2 FLOPs per multiply-add, context {flops.context:,}"],
        below=list_estimates(flops),
        bold=("total",),
    )


def name_pass(flops: Flops) -> str:
    """What reads the whole context at once."""
    return "pass" if flops.flops_per_token is None else "prompt"


def list_estimates(flops: Flops) -> list[str]:
    """The lines below: MLA as the reference computes it, training, and how far off the usual estimates are."""
    lines = []
    if flops.expanded_flops_per_token is not None:
        expanded = format_flops(flops.expanded_flops_per_token)
        lines += [
            "per decoded token, MLA runs over the compressed latents, as engines compute it;",
            f"  expanding all cached latents anew, as the reference does: {expanded}",
        ]
    decoded = flops.flops_per_token
    if decoded is None:
        estimate = flops.context * flops.two_n
        comparison = f"{format_flops(estimate)} per pass {compare_estimate(estimate, flops.prefill_flops)}"
        lines.append(f"2N estimate: {format_flops(flops.two_n)} per token, {comparison}")
    else:
        lines.append(f"2N estimate: {format_flops(flops.two_n)} per token {compare_estimate(flops.two_n, decoded)}")
    training = flops.training_flops_per_token
    difference = compare_estimate(flops.six_n, training)
    lines.append(f"training: {format_flops(training)} per token; 6N estimate: {format_flops(flops.six_n)} {difference}")
    lines += [*list_training(flops), *list_bounds(flops)]
    operations = {"decoded token": flops.elementwise_operations, name_pass(flops): flops.prefill_elementwise_operations}
    work = [f"{format_scaled(n, OPERATIONS)} per {name}" for name, n in operations.items() if n is not None]
    lines.append(f"element-wise work (not included): {', '.join(work)}")
    return lines


def list_training(flops: Flops) -> list[str]:
    """The lines about the whole training: its FLOPs, and its time at the assumed utilisation."""
    if flops.training_flops is None or flops.six_nd is None or flops.train_tokens is None:
        return []
    lines = [
        f"training on {format_scaled(flops.train_tokens, TOKENS)} tokens: {format_flops(flops.training_flops)}; "
        f"6ND estimate: {format_flops(flops.six_nd)} {compare_estimate(flops.six_nd, flops.training_flops)}"
    ]
    if time := flops.training_time:
        peak = f"{format_flops(time.flops_per_second)}/s ({time.rate_dtype}, dense)"
        lines += [
            f"  at an assumed MFU of {100 * time.mfu:g}% of {peak}:",
            f"  {format_amount(time.gpu_hours)} GPU-hours, {format_amount(time.days)} days "
            f"on {time.gpus:,} × {time.gpu}",
        ]
    return lines


def list_bounds(flops: Flops) -> list[str]:
    """The lines about the minimum time of a decoding step and of a prompt."""
    roofline = flops.roofline
    if roofline is None:
        return []
    rate = f"{format_bytes(roofline.bytes_per_second)}/s"
    if roofline.flops_per_second is not None:
        rate += f", {format_flops(roofline.flops_per_second)}/s ({roofline.rate_dtype}, dense)"
    lines = [
        f"minimum time on {roofline.gpus:,} × {roofline.gpu}: {rate}",
        f"  weights {roofline.dtype}; KV cache {roofline.kv_dtype}; batch {roofline.batch:,}"
        if roofline.decoding
        else f"  weights {roofline.dtype}; one sequence",
    ]
    if roofline.prompt.flops < flops.prefill_flops:
        lines[-1] += "; causal mask excluded"
    if roofline.decoding:
        lines += describe_bound("decode", roofline.decoding, roofline.batch)
    lines += describe_bound(name_pass(flops), roofline.prompt, flops.context)
    if roofline.rate_reason:
        lines.append(f"  no compute bound: {roofline.rate_reason}")
    return lines


def describe_bound(name: str, bound: Bound, tokens: int) -> list[str]:
    """Such as "decode ≥ 9.19 ms, memory-bound; ≤ 1,741 tokens/s", and what takes how long. Of a prompt on a GPU
    without a rate, tokens per second would say nothing."""
    memory = f"{format_bytes(bound.weights_bytes + bound.cache_bytes)} in {format_time(bound.memory_seconds)}"
    compute, limit = format_flops(bound.flops), " from memory alone"
    rate = f"; ≤ {format_rate(tokens, bound.seconds)} tokens/s"
    if bound.compute_seconds is not None:
        compute, limit = f"{compute} in {format_time(bound.compute_seconds)}", f", {bound.limit}-bound"
    elif name != "decode":
        rate = ""
    return [f"  {name} ≥ {format_time(bound.seconds)}{limit}{rate}", f"    {memory}; {compute}"]


def format_rate(tokens: int, seconds: float) -> str:
    """Tokens per second, rounded down; below 100 with one decimal.

    >>> format_rate(16, 0.00919), format_rate(1, 0.15)
    ('1,741', '6.6')
    """
    rate = tokens / seconds
    return f"{int(rate):,}" if rate >= 100 else f"{int(rate * 10) / 10:.1f}"


def format_time(seconds: float) -> str:
    """A time with three significant digits.

    >>> format_time(0.00513), format_time(75.2)
    ('5.13 ms', '75.2 s')
    """
    return format_scaled(round(seconds * 10**9), ((" s", 10**9), (" ms", 10**6), (" µs", 10**3), (" ns", 1)))


def format_amount(amount: float) -> str:
    """A number with three significant digits.

    >>> format_amount(609_969.4), format_amount(3.214)
    ('610,000', '3.21')
    """
    return f"{float(f'{amount:.3g}'):,.15g}"


def compare_estimate(estimate: int, count: int) -> str:
    """How far an estimate is from a count.

    >>> compare_estimate(80, 100), compare_estimate(130, 100), compare_estimate(100, 100)
    ('(20% too low)', '(30% too high)', '(within 1%)')
    """
    percent = round(100 * abs(estimate - count) / count) if count else 0
    if not percent:
        return "(within 1%)"
    return f"({percent}% too {'low' if estimate < count else 'high'})"
