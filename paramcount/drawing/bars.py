"""Charts of many models, total and active, as SVG, PNG or PDF.

On a linear scale, a bar is as long as its parameters, and its components are stacked. On a log scale lengths cannot be
added, so a dot shows the parameters, and a bar of 100 % beside it shows the components.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from paramcount.counting.components import COMPONENTS
from paramcount.drawing.colours import COLOURS, INK, PAPER
from paramcount.drawing.figures import (
    ENDINGS,
    FONT_SIZE,
    Format,
    escape_missing_letters,
    list_letters,
    save_figure,
)
from paramcount.errors import ParamcountError, find_nearest, make_printable
from paramcount.output.numbers import format_count
from paramcount.views.compare import UNVERIFIED, Row, describe_row_changes, is_unverified

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Scale = Literal["linear", "log"]
MAX_MODELS = 1000  # in one plot: the height of images is limited

# Inches
WIDTH = 9.0
LONGEST = {"linear": 0.84, "log": 0.72}  # the largest sum's share of the axis; the rest is for its label
DOTS, PANEL_GAP = 0.5, 0.03  # the share of the dots in the plot; the gap to the bars of 100 %
RADIUS = {0.2: 0.05, 0.12: 0.038}  # of a dot, for each height of a bar
TOTAL_HEIGHT, ACTIVE_HEIGHT, BAR_GAP, MODEL_GAP = 0.2, 0.12, 0.025, 0.12
LEGEND_ROW, LEGEND_COLUMNS, MARGIN = 0.17, 5, 0.1
AXIS_HEIGHT, TOP_AXIS_HEIGHT, NOTE_HEIGHT = 0.42, 0.2, 0.14
MANY = 12  # with more models, the scale is repeated at the top
TITLE = "Parameters by component"


class Bar(NamedTuple):
    """One bar: parameters by component, label, and position in inches from the top."""

    components: Mapping[str, int]
    label: str
    top: float
    height: float

    @property
    def sum(self) -> int:
        return sum(self.components.values())


class BarLine(NamedTuple):
    """The row of a model: name, middle in inches from the top, and the text that replaces the bar of an estimate."""

    name: str
    middle: float
    replacement: str


def plot_rows(rows: Sequence[Row], *, format: Format = "svg", scale: Scale = "linear", paper: bool = True) -> bytes:
    """The bar chart of rows from `views.compare.make_rows`. `paper`: white background, otherwise transparent."""
    for option, value, choices in (("format", format, ENDINGS.values()), ("scale", scale, ("linear", "log"))):
        if value not in choices:
            problem, nearest = f"= {make_printable(repr(value), 40)}", find_nearest(value, choices)
            raise ParamcountError(problem, where=option, choices=choices, nearest=nearest)
    if not rows:
        raise ParamcountError("no models to plot", expected="at least one")
    if len(rows) > MAX_MODELS:
        raise ParamcountError(f"{len(rows):,} models in one plot", expected=f"at most {MAX_MODELS:,}")
    return save_figure(
        lambda: _make_figure(rows, scale, has_outlines=format != "svg"), format, TITLE, transparent=not paper
    )


def place_bars(rows: Sequence[Row]) -> tuple[list[BarLine], list[Bar], float]:
    """(rows, bars, height) of the plot, from top to bottom.

    >>> from paramcount.views.compare import make_rows
    >>> from paramcount.loading import select_models
    >>> [bar.label for bar in place_bars(make_rows(select_models(["gpt2-small", "mixtral-8x7b"])))[1]]
    ['124M', '46.7B', 'active 12.9B']
    """
    lines, bars, top = [], [], MODEL_GAP
    for row in rows:
        start = top
        name = make_printable(row["id"], 40) + (" *" if is_unverified(row) else "")
        replacement = ""
        if row["estimate"]:
            replacement = f"third-party estimate: {make_printable(row['claimed_total'] or 'none', 90)}"
        else:
            components = {name: row[name] for name in COMPONENTS}
            bars.append(Bar(components, format_count(row["total"]), top, TOTAL_HEIGHT))
        top += TOTAL_HEIGHT
        if not row["estimate"] and row["active"] != row["total"]:
            top += BAR_GAP
            bars.append(Bar(row["active_components"], f"active {format_count(row['active'])}", top, ACTIVE_HEIGHT))
            top += ACTIVE_HEIGHT
        lines.append(BarLine(name, (start + top) / 2, replacement))
        top += MODEL_GAP
    return lines, bars, top


class BarAxis(NamedTuple):
    """The horizontal axis, from 0 to 1, with its ticks and label."""

    label: str
    ticks: tuple[tuple[float, str], ...]
    start: int  # the sum at 0
    end: int  # the largest sum
    scale: Scale

    def at(self, n: int) -> float:
        if self.scale == "linear":
            return LONGEST["linear"] * (n / self.end)
        start = math.log10(self.start)
        return LONGEST["log"] * (math.log10(max(n, self.start)) - start) / (math.log10(self.end) - start)


UNITS = (("", 0), ("K", 3), ("M", 6), ("B", 9), ("T", 12))


def make_linear_axis(sums: Sequence[int]) -> BarAxis:
    """A linear axis from 0, with round ticks.

    >>> [text for _, text in make_linear_axis([46_702_792_704]).ticks]
    ['0', '10B', '20B', '30B', '40B', '50B']
    """
    end = max((*sums, 1))
    step = 10 ** (len(str(end)) - 1)
    step = next(s for s in (step * 2, step, step // 2, step // 5, 1) if s and (end // s >= 4 or s == 1))
    last = end * 100 // int(100 * LONGEST["linear"])
    axis = BarAxis("parameters", (), 0, end, "linear")
    return axis._replace(ticks=tuple((axis.at(n), format_tick(n)) for n in range(0, last + 1, step)))


def make_log_axis(sums: Sequence[int]) -> BarAxis:
    """A logarithmic axis that starts below the smallest sum.

    >>> [text for _, text in make_log_axis([124_439_808, 46_702_792_704]).ticks]
    ['10M', '100M', '1B', '10B', '100B']
    """
    positive = [n for n in sums if n > 0] or [1]
    first = len(str(min(positive))) - 1
    if min(positive) < 2 * 10**first:
        first -= 1
    first, end = max(first, 0), max((*positive, 10))
    axis = BarAxis("parameters (log scale)", (), 10**first, max(end, 10 ** (first + 1)), "log")
    decades = range(first, len(str(axis.end)) + 1)
    ticks = [(axis.at(10**k), format_tick(10**k)) for k in decades[:: max(1, math.ceil(len(decades) / 6))]]
    return axis._replace(ticks=tuple((x, text) for x, text in ticks if x <= 1))


def format_tick(n: int) -> str:
    """A tick label with its unit.

    >>> format_tick(500_000_000), format_tick(1_500_000_000_000), format_tick(0)
    ('500M', '1.5T', '0')
    """
    unit, digits = next((unit, digits) for unit, digits in reversed(UNITS) if n >= 10**digits or not digits)
    whole, rest = divmod(n, 10**digits)
    decimals = str(rest).rjust(digits, "0").rstrip("0") if rest else ""
    return f"{whole:,}{'.' if decimals else ''}{decimals}{unit}"


def _make_figure(rows: Sequence[Row], scale: Scale, *, has_outlines: bool) -> Figure:
    """The plot. `has_outlines`: text becomes outlines, so letters that the font lacks are escaped."""
    from matplotlib.figure import Figure

    lines, bars, height = place_bars(rows)
    axis = (make_log_axis if scale == "log" else make_linear_axis)([bar.sum for bar in bars])
    if has_outlines:
        lines = [
            line._replace(
                name=make_printable(escape_missing_letters(line.name), 46),
                replacement=escape_missing_letters(line.replacement),
            )
            for line in lines
        ]
    names = [line.name for line in lines]
    left = min(max(map(_measure_name, names)) + 2 * MARGIN, WIDTH / 2)
    components = [name for name in COMPONENTS if any(bar.components[name] for bar in bars)]
    legend_height = LEGEND_ROW * math.ceil(len(components) / LEGEND_COLUMNS) + 2 * MARGIN
    above = legend_height + (TOP_AXIS_HEIGHT if len(rows) > MANY else 0)
    notes = [axis.label, *(make_printable(line, 110) for line in describe_row_changes(rows))]
    notes += [UNVERIFIED] if any(is_unverified(row) for row in rows) else []
    below = AXIS_HEIGHT + NOTE_HEIGHT * "\n".join(notes).count("\n")
    figure_height = above + height + below
    figure = Figure(figsize=(WIDTH, figure_height))
    plot_width = WIDTH - left - MARGIN
    panels = [(0.0, 1.0)] if scale == "linear" else [(0.0, DOTS), (DOTS + PANEL_GAP, 1 - DOTS - 2 * PANEL_GAP)]
    axes, *others = (
        figure.add_axes(
            (
                (left + start * plot_width) / WIDTH,
                below / figure_height,
                width * plot_width / WIDTH,
                height / figure_height,
            )
        )
        for start, width in panels
    )
    _set_up_axes(axes, axis.ticks, height, has_top=len(rows) > MANY)
    for bar in bars:
        length = axis.at(bar.sum)
        if scale == "linear":
            _draw_bar(axes, bar, length)
        else:
            _draw_dot(axes, bar, length, DOTS * plot_width)
        size = FONT_SIZE if bar.height == TOTAL_HEIGHT else FONT_SIZE - 1
        gap = 0.006 if scale == "linear" else 0.025
        axes.text(length + gap, bar.top + bar.height / 2, bar.label, va="center_baseline", fontsize=size)
    for line in lines:
        if line.replacement:
            axes.text(0.01, line.middle, line.replacement, va="center", style="italic")
    axes.set_yticks([line.middle for line in lines], labels=names, fontsize=FONT_SIZE)
    axes.set_xlabel("\n".join(notes), loc="left")
    for shares in others:
        _set_up_axes(shares, [(0.0, "0%"), (0.5, "50%"), (1.0, "100%")], height, has_top=len(rows) > MANY)
        shares.set_yticks([])
        shares.patch.set_visible(False)  # the text of an estimate may be longer than the panel at its left
        shares.set_xlabel("components", loc="left")
        for bar in bars:
            _draw_bar(shares, bar, 1.0)
    if components:
        from matplotlib.patches import Patch

        handles = [Patch(facecolor=COLOURS[name], label=name) for name in components]
        legend = figure.legend(
            handles=handles, loc="upper left", ncols=LEGEND_COLUMNS, borderaxespad=0.4, handlelength=1.2
        )
        legend.set_frame_on(False)
    return figure


def _set_up_axes(axes: Axes, ticks: Sequence[tuple[float, str]], height: float, *, has_top: bool) -> None:
    """Scales, ticks and grid lines of a panel; y in inches from the top."""
    axes.set_xlim(0, 1)
    axes.set_ylim(height, 0)
    axes.set_xticks([x for x, _ in ticks], labels=[text for _, text in ticks])
    axes.tick_params(length=0, labeltop=has_top)
    axes.grid(axis="x", color="#b8b8b8", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)


def _draw_dot(axes: Axes, bar: Bar, x: float, width: float) -> None:
    """Draw a round dot at a position: filled for a total, hollow for active parameters. `width`: of the panel."""
    from matplotlib.patches import Ellipse

    radius = RADIUS[bar.height]
    is_total = bar.height == TOTAL_HEIGHT
    centre = (x, bar.top + bar.height / 2)
    fill = INK if is_total else PAPER
    axes.add_patch(Ellipse(centre, 2 * radius / width, 2 * radius, facecolor=fill, edgecolor=INK, clip_on=False))


def _draw_bar(axes: Axes, bar: Bar, length: float) -> None:
    total, sum_before = bar.sum, 0
    for name, n in bar.components.items():
        if n:
            left, width = length * (sum_before / total), length * (n / total)
            axes.barh(bar.top, width, bar.height, left=left, align="edge", color=COLOURS[name], linewidth=0)
            sum_before += n


def _measure_name(text: str) -> float:
    """The width of a name in inches; letters that the font lacks count as the widest."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    letters = list_letters()
    measurable = "".join(c if ord(c) in letters else "W" for c in text)
    font = FontProperties(size=FONT_SIZE)
    width, _, _ = text_to_path.get_text_width_height_descent(measurable, font, ismath=False)
    return float(width) / 72
