"""The FLOPs of a model as a table: one row per component, while decoding and for a prompt."""

from __future__ import annotations

from paramcount.costs.flops import Flops
from paramcount.output.numbers import format_scaled
from paramcount.output.tables import Column, Table

UNITS = (("ZFLOPs", 10**21), ("EFLOPs", 10**18), ("PFLOPs", 10**15), ("TFLOPs", 10**12), ("GFLOPs", 10**9),
         ("MFLOPs", 10**6))  # fmt: skip


def format_flops(count: int) -> str:
    """FLOPs with three significant digits.

    >>> format_flops(19_300_000_000), format_flops(6 * 8_030_261_248 * 15 * 10**12)
    ('19.3 GFLOPs', '723 ZFLOPs')
    """
    return format_scaled(count, UNITS) if count >= UNITS[-1][1] else f"{count:,} FLOPs"


def build_flops_table(flops: Flops) -> Table:
    """One row per component and the total."""
    columns = [
        Column("component", "component", right=False),
        Column("flops_per_token", "per decoded token", show=format_flops),
        Column("prefill_flops", f"prompt of {flops.context:,} tokens", show=format_flops),
    ]
    names = dict.fromkeys((*flops.by_component, *flops.prefill_by_component))
    rows = [[name, flops.by_component.get(name, 0), flops.prefill_by_component.get(name, 0)] for name in names]
    rows.append(["total", flops.flops_per_token, flops.prefill_flops])
    return Table(
        columns,
        rows,
        flops.to_dict(),
        above=[f"{flops.name}   matrix products, 2 FLOPs per multiply-add, context {flops.context:,}"],
        below=list_estimates(flops),
        bold=("total",),
    )


def list_estimates(flops: Flops) -> list[str]:
    """The lines below: MLA as engines compute it, training, and how far off the usual estimates are."""
    lines = []
    if flops.absorbed_flops_per_token is not None:
        absorbed = format_flops(flops.absorbed_flops_per_token)
        lines.append(f"per decoded token with absorbed MLA up-projection, as most engines compute it: {absorbed}")
    decoded = flops.flops_per_token if flops.absorbed_flops_per_token is None else flops.absorbed_flops_per_token
    lines.append(f"2N estimate: {format_flops(flops.two_n)} per token {compare_estimate(flops.two_n, decoded)}")
    training = flops.training_flops_per_token
    difference = compare_estimate(flops.six_n, training)
    lines.append(f"training: {format_flops(training)} per token; 6N estimate: {format_flops(flops.six_n)} {difference}")
    return lines


def compare_estimate(estimate: int, count: int) -> str:
    """How far an estimate is from a count.

    >>> compare_estimate(80, 100), compare_estimate(130, 100), compare_estimate(100, 100)
    ('(20% too low)', '(30% too high)', '(within 1%)')
    """
    percent = round(100 * abs(estimate - count) / count) if count else 0
    if not percent:
        return "(within 1%)"
    return f"({percent}% too {'low' if estimate < count else 'high'})"
