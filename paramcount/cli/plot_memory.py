"""Memory against context: weights, state and KV cache stacked, with the memory of the device as a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramcount.costs.memory import ContextCost, Memory
from paramcount.costs.render_memory import inline_label
from paramcount.drawing.figures import Format, escape_missing_letters, save_figure
from paramcount.errors import make_printable
from paramcount.output.numbers import format_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 7.5, 4.2  # inches
COLOURS = {"weights": "#487db3", "state": "#843388", "KV cache": "#e56e28", "limit": "#b3261e"}
POINTS = 200  # context lengths
TITLE = "Memory by context"
GB = 10**9


def plot_memory(memory: Memory, format: Format) -> bytes:
    """An SVG, PNG or PDF file."""
    longest = max(cost.context for cost in memory.contexts)
    costs = [memory.at(n) for n in sorted({1 + (longest - 1) * i // POINTS for i in range(POINTS + 1)})]
    return save_figure(lambda: make_figure(memory, costs), format, TITLE)


def make_figure(memory: Memory, costs: list[ContextCost]) -> Figure:
    """One area each for weights, state and KV cache, and lines for the device and the context asked for."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes = figure.add_subplot()
    contexts = [cost.context for cost in costs]
    areas = {  # {label: (colour, sizes)}
        f"weights ({inline_label(memory.dtype)})": ("weights", [memory.loaded_bytes / GB] * len(costs)),
        "state": ("state", [cost.state_bytes / GB for cost in costs]),
        f"KV cache ({memory.kv_dtype})": ("KV cache", [cost.kv_cache_bytes / GB for cost in costs]),
    }
    if not memory.state_bytes:
        del areas["state"]
    colours, sizes = zip(*areas.values())
    axes.stackplot(contexts, *sizes, labels=[*areas], colors=[COLOURS[name] for name in colours])
    if memory.fit:
        limit = memory.fit.memory_bytes * memory.fit.devices
        devices = f"{memory.fit.devices} × {memory.fit.device}: {format_bytes(limit)}"
        axes.axhline(limit / GB, color=COLOURS["limit"], linestyle="--", linewidth=1.2, label=devices)
    axes.set_xlim(contexts[0], contexts[-1])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("context (tokens per sequence)")
    axes.set_ylabel("GB")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{int(value):,}"))
    batch = f", {memory.batch:,} sequences" if memory.batch > 1 else ""
    axes.set_title(make_printable(escape_missing_letters(f"{memory.name}{batch}"), 80), loc="left", fontweight="bold")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(loc="upper left", frameon=False)
    return figure
