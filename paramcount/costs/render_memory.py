"""The memory of a model as a table: weights by format, then KV cache and total by context."""

from __future__ import annotations

from paramcount.costs.memory import ContextCost, Memory
from paramcount.output.numbers import format_binary_bytes, format_bytes
from paramcount.output.tables import Column, Table, render


def build_memory_table(memory: Memory) -> Table:
    """One row per context length; the weights by format come before them in a terminal."""
    table = make_context_table(memory)
    return table._replace(
        above=[f"{memory.name}   {memory.parameters:,} parameters", *table.above],
        data=memory.to_dict(),
        texts={"table": lambda width, colour: render_text(memory, width, colour)},
    )


def render_text(memory: Memory, width: int, colour: bool) -> str:
    """Weights by format, cache per token, and the table of contexts."""
    heading = f"{memory.name}   {memory.parameters:,} parameters"
    weights = make_weight_table(memory)._replace(above=[heading])
    return (
        render(weights, "table", width, colour=colour)
        + "\n"
        + render(make_context_table(memory), "table", width, colour=colour)
    )


def make_weight_table(memory: Memory) -> Table:
    """One row per format of the weights."""
    columns = [
        Column("dtype", "weights", right=False),
        Column("weights_bytes", "GB", show=format_bytes),
        Column("weights_gib", "GiB", show=format_binary_bytes),
        Column("note", "", right=False, style="dim"),
    ]
    rows = [[cost.dtype, cost.weights_bytes, cost.weights_bytes, cost.note] for cost in memory.formats]
    return Table(columns, rows, None, wraps=True, headings=False, bold=(memory.dtype,))


def make_context_table(memory: Memory) -> Table:
    """One row per context length."""
    columns = [
        Column("context", "context"),
        Column("kv_cache_bytes", "KV cache", show=format_bytes),
        *([Column("state_bytes", "state", show=format_bytes)] if memory.state_bytes else []),
        Column("total_bytes", "total", show=format_bytes),
        Column("total_gib", "", show=format_binary_bytes, only="text"),
    ]
    rows = [list_cells(row, memory) for row in memory.contexts]
    return Table(columns, rows, None, above=[describe_cache(memory)], bold=(memory.context,))


def list_cells(row: ContextCost, memory: Memory) -> list[int]:
    state = [row.state_bytes] if memory.state_bytes else []
    return [row.context, row.kv_cache_bytes, *state, row.total_bytes, row.total_bytes]


def describe_cache(memory: Memory) -> str:
    """The line above the contexts: "KV cache (BF16): 131 kB per token"."""
    parts = []
    if memory.kv_bytes_per_token:
        parts.append(f"{format_bytes(memory.kv_bytes_per_token)} per token")
    if memory.window_bytes:
        parts.append(f"up to {format_bytes(memory.window_bytes)} in sliding windows")
    if memory.state_bytes:
        parts.append(f"{format_bytes(memory.state_bytes // memory.batch)} state")
    text = " + ".join(parts) if parts else "none"
    if memory.batch != 1:
        text += f" per sequence; {memory.batch:,} sequences"
    return f"KV cache ({memory.kv_dtype}): {text}; total with {memory.dtype} weights"
