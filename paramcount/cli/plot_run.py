"""Plots of a pass over a text: residual norms, experts per layer, attention maps."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from paramcount.drawing.figures import check_plot, escape_missing_letters, save_figure
from paramcount.execution.render import HEADINGS, KINDS, format_layer, shorten
from paramcount.execution.text import TextRun, format_token

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 10.0  # inches
ROW_HEIGHT = 2.9
MAPS_PER_ROW = 4
MOST_MAPS = 16  # layers whose attention is drawn, evenly spaced
MOST_LABELS = 12  # tokens; more are not labelled
COLOURS = {"attention": "#e56e28", "mixer": "#7a5195", "mlp": "#11753f"}
TITLE = "What changes from layer to layer"


def plot_run(run: TextRun, path: str) -> bytes:
    """An SVG, PNG or PDF file, as the extension of the path says. The run has kept its attention maps."""
    return save_figure(lambda: make_figure(run), check_plot(path), TITLE)


def make_figure(run: TextRun) -> Figure:
    """Residual norms and experts in the first row, then an attention map per layer, the mean over heads."""
    from matplotlib.figure import Figure

    with_maps = [view for view in run.layers if view.maps is not None]
    picks = np.unique(np.linspace(0, len(with_maps) - 1, min(MOST_MAPS, len(with_maps))).round().astype(int))
    has_experts = any(view.n_routed for view in run.layers)
    n_rows = 1 + ceil(len(picks) / MAPS_PER_ROW)
    figure = Figure(figsize=(WIDTH, n_rows * ROW_HEIGHT), layout="constrained")
    grid = figure.add_gridspec(n_rows, MAPS_PER_ROW)
    half = MAPS_PER_ROW // 2 if has_experts else MAPS_PER_ROW
    draw_norms(figure.add_subplot(grid[0, :half]), run)
    if has_experts:
        draw_experts(figure.add_subplot(grid[0, half:]), run)
    for i, pick in enumerate(picks):
        axes = figure.add_subplot(grid[1 + i // MAPS_PER_ROW, i % MAPS_PER_ROW])
        draw_map(
            axes, with_maps[pick].maps, f"layer {format_layer(with_maps[pick])}", run, has_labels=not i % MAPS_PER_ROW
        )
    return figure


def draw_norms(axes: Any, run: TextRun) -> None:
    """The norm of the residual stream after each layer, and what is added to it."""
    layers = range(len(run.layers))
    axes.plot(layers, [view.norm for view in run.layers], color="#404040", label="norm after the layer")
    for kind in KINDS:
        added = [view.added.get(kind, 0) * view.norm for view in run.layers]
        if any(added):
            axes.plot(layers, added, color=COLOURS[kind], label=HEADINGS[kind])
    axes.set_title("residual stream of the last position")
    axes.set_xlabel("layer")
    axes.set_ylabel("norm")
    axes.set_ylim(bottom=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)


def draw_experts(axes: Any, run: TextRun) -> None:
    """The share of the tokens that each expert of each layer gets."""
    views = [view for view in run.layers if view.n_routed]
    n_experts = max(len(view.n_routed) for view in views)
    shares = np.zeros((len(views), n_experts))
    for row, view in zip(shares, views):
        row[: len(view.n_routed)] = np.array(view.n_routed) / len(run.ids)
    image = axes.imshow(shares, aspect="auto", cmap="Greens", vmin=0, interpolation="nearest")
    ticks = np.unique(np.linspace(0, len(views) - 1, min(8, len(views))).round().astype(int))
    axes.set_yticks(ticks, labels=[format_layer(views[i]) for i in ticks])
    axes.set_title("tokens routed to each expert")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("expert")
    axes.set_ylabel("layer")
    axes.figure.colorbar(image, ax=axes, label="share of the tokens")


def draw_map(axes: Any, maps: Any, title: str, run: TextRun, *, has_labels: bool) -> None:
    """The attention weights of a layer, the mean over its heads: a row per query, a column per key."""
    axes.imshow(maps.mean(0), cmap="Blues", vmin=0, interpolation="nearest")
    axes.set_title(f"{title}, mean of {len(maps)} heads")
    labels = [escape_missing_letters(shorten(format_token(token))) for token in run.decoded]
    if len(labels) <= MOST_LABELS:
        axes.set_xticks(range(len(labels)), labels=labels, rotation=90)
        axes.set_yticks(range(len(labels)), labels=labels if has_labels else [])
