"""The memory of a model as a table: weights by format, then KV cache and total by context."""

from __future__ import annotations

from paramcount.costs.caches import count_source
from paramcount.costs.draft_models import DraftCost
from paramcount.costs.fit import Fit
from paramcount.costs.memory import Memory
from paramcount.costs.render_fit import (
    describe_devices,
    describe_each,
    describe_minimum,
    describe_options,
    describe_shares,
    describe_suggestions,
    describe_verdict,
)
from paramcount.output.numbers import format_binary_bytes, format_bytes
from paramcount.output.tables import Column, Table, render

MMPROJ_NOTE = "encoders in F16, a file of their own"


def build_memory_table(memory: Memory, *, in_python: bool = False) -> Table:
    """One row per context length; the weights by format come before them in a terminal. `in_python`: names arguments,
    not options."""
    table = make_context_table(memory)
    heading = f"{memory.name}   {memory.parameters:,} parameters"
    fit = [*describe_fit(memory, in_python=in_python), *describe_available(memory)]

    def render_text(width: int, colour: bool, shortens: bool) -> str:
        weights = make_weight_table(memory)._replace(above=[heading, *fit, *([""] if fit else [])])
        return "\n".join(render(it, "table", width, colour=colour) for it in (weights, table))

    above = [heading, *fit, *table.above]
    return table._replace(above=above, data=memory.to_dict(), texts={"table": render_text})


def make_weight_table(memory: Memory) -> Table:
    columns = [
        Column("dtype", "weights", right=False),
        Column("weights_bytes", "GB", show=format_bytes),
        Column("weights_gib", "GiB", show=format_binary_bytes),
        Column("note", "", right=False, style="dim"),
    ]
    rows, last = [], ""
    for cost in memory.formats:
        note = "as above" if cost.note and cost.note == last else cost.note
        rows.append([cost.dtype, cost.weights_bytes, cost.weights_bytes, note])
        last = cost.note
        if cost.mmproj_bytes:
            rows.append(["  + mmproj", cost.mmproj_bytes, cost.mmproj_bytes, MMPROJ_NOTE])
    return Table(columns, rows, None, wraps=True, headings=False, bold=(memory.dtype,))


def make_context_table(memory: Memory) -> Table:
    columns = [
        Column("context", "context"),
        Column("kv_cache_bytes", "KV cache", show=format_bytes),
        Column("total_bytes", "total", show=format_bytes),
        Column("total_gib", "", show=format_binary_bytes, only="text"),
    ]
    rows = [[row.context, row.kv_cache_bytes, row.total_bytes, row.total_bytes] for row in memory.contexts]
    if memory.state_bytes:
        columns.insert(2, Column("state_bytes", "state", show=format_bytes))
        rows = [[*cells[:2], row.state_bytes, *cells[2:]] for cells, row in zip(rows, memory.contexts)]
    return Table(columns, rows, None, above=[describe_cache(memory)], bold=(memory.context,))


def describe_cache(memory: Memory) -> str:
    """The line above the contexts: "KV cache (BF16): 131 kB per token"."""
    state = f"{format_bytes(memory.state_bytes // memory.batch)} state ({memory.state_dtype})"
    parts = []
    if memory.kv_bytes_per_token:
        parts.append(f"{format_bytes(memory.kv_bytes_per_token)} per token")
    if memory.window_bytes:
        parts.append(f"up to {format_bytes(memory.window_bytes)} in sliding windows")
    if memory.source and (size := count_source(memory.caches, memory.request.kv_dtype, memory.source)):
        parts.append(f"{format_bytes(size)} for an encoder input of {memory.source:,}")
    if memory.state_bytes and parts:
        parts.append(state)
    text = " + ".join(parts) if parts else "none"
    if memory.state_bytes and not parts:
        text += f"; {state}"
    if memory.batch != 1:
        text += f" per sequence; {memory.batch:,} sequences"
    weights = memory.dtype.partition(" (")[0] + describe_mmproj(memory)
    draft = f" and the draft {describe_draft(memory.draft)}" if memory.draft else ""
    return f"KV cache ({memory.kv_dtype}): {text}; total with {weights} weights{draft}"


def describe_draft(draft: DraftCost) -> str:
    """What a draft model takes: "qwen3-0.6b (1.50 GB weights in BF16, 940 MB cache)"."""
    weights = f"{format_bytes(draft.weights_bytes)} weights in {inline_label(draft.dtype)}"
    return f"{draft.id} ({weights}, {format_bytes(draft.cache_bytes)} cache)"


def inline_label(label: str) -> str:
    """The label of a format without its own parentheses, to stand in others.

    >>> inline_label("FP8 (as stored)")
    'FP8, as stored'
    """
    return label.replace(" (", ", ").replace(")", "")


def describe_mmproj(memory: Memory) -> str:
    return " + mmproj" if memory.mmproj_bytes else ""


def describe_fit(memory: Memory, *, in_python: bool = False) -> list[str]:
    """The lines about the device: the verdict, the sum, the limits, and what helps."""
    fit = memory.fit
    if fit is None:
        return []
    devices = describe_devices(fit) + (f" ({fit.parallelism})" if fit.parallelism else "")
    fullest = fit.fullest
    terms = [f"{format_bytes(fullest.weights_bytes)} weights ({inline_label(memory.dtype)}{describe_mmproj(memory)})"]
    if fullest.kv_cache_bytes:
        terms.append(f"{format_bytes(fullest.kv_cache_bytes)} KV cache ({memory.context:,} tokens)")
    if fullest.state_bytes:
        terms.append(f"{format_bytes(fullest.state_bytes)} state")
    if drafted := fullest.draft_weights_bytes + fullest.draft_cache_bytes:
        terms.append(f"{format_bytes(drafted)} draft")
    kind = ", ".join(f"{what} {format_bytes(size)}" for what, size in fit.overhead_items) or "assumed"
    terms.append(f"{format_bytes(fit.overhead_bytes)} overhead ({kind})")
    capacity = format_bytes(fit.memory_bytes)
    if fit.utilization < 1:
        capacity = f"{fit.utilization:.0%} of {capacity}"
    return [
        describe_verdict(fit, devices, capacity),
        f"{' + '.join(terms)} = {format_bytes(fit.needed_bytes)}; available: {capacity}{describe_each(fit)}",
        describe_limits(fit, memory, in_python=in_python),
        *fit.uneven,
        *describe_shares(fit),
        *describe_longer_context(fit, memory, in_python=in_python),
    ]


def describe_available(memory: Memory) -> list[str]:
    """The lines about a cache of a given size: what it holds, and what the engine prints besides."""
    cache = memory.available
    if cache is None:
        return []
    size = f"{format_bytes(cache.available_bytes)} ({format_binary_bytes(cache.available_bytes)})"
    needed = f"one sequence of {memory.context:,} tokens needs {format_bytes(cache.needed_bytes)}"
    first = f"KV cache of {size}: {cache.tokens:,} tokens, {cache.concurrency:.2f} sequences of {memory.context:,}"
    if not cache.fits:
        first = f"KV cache of {size}: {needed}"
    longest = f"longest context {describe_context(cache.longest_context, memory)}"
    return [first, f"{longest}; {needed}" if cache.fits else longest, *cache.details]


def describe_limits(fit: Fit, memory: Memory, *, in_python: bool) -> str:
    """Longest context, largest batch and fewest devices; or what makes it fit."""
    parts = [f"KV cache size {fit.kv_tokens:,} tokens"] if memory.engine == "vllm" and fit.kv_tokens else []
    if fit.fits:
        batch = "unlimited" if fit.largest_batch is None else f"{fit.largest_batch:,}"
        longest = describe_context(fit.longest_context, memory)
        parts += [f"longest context {longest}", f"largest batch {batch}"]
    elif helps := describe_suggestions(fit.suggestions, in_python=in_python):
        parts.append(helps)
    return " · ".join([*parts, describe_minimum(fit)])


def describe_longer_context(fit: Fit, memory: Memory, *, in_python: bool) -> list[str]:
    """What allows a longer context, if it fits already."""
    return [
        f"longest context with {describe_options(it, in_python=in_python)}: "
        f"{describe_context(it.longest_context, memory)}"
        for it in fit.suggestions
        if fit.fits
    ]


def describe_context(context: int | None, memory: Memory) -> str:
    if context is None:
        return "unlimited"
    return f"{context:,} tokens" + (" (the model's limit)" if context == memory.context_limit else "")
