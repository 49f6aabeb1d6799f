"""Bar charts of many models: stacked components, total and active, as SVG, PNG or PDF."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from paramcount.counting.count import COMPONENTS
from paramcount.errors import ParamcountError, find_nearest, make_printable
from paramcount.output.files import choose_by_extension
from paramcount.output.numbers import format_count
from paramcount.views.compare import UNVERIFIED, describe_row_changes, is_unverified

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Scale = Literal["linear", "log"]
Format = Literal["svg", "png", "pdf"]
ENDINGS: dict[str, Format] = {".svg": "svg", ".png": "png", ".pdf": "pdf"}
MOST = 1000  # models in one plot: images have a largest height

# One colour per component: a hue for each kind (embeddings blue, attention orange, feed-forward green, encoders pink).
# They differ in lightness as well, for colour-blind readers and for print.
COLOURS = {
    "embedding": "#487db3", "other_embedding": "#a1d4f0", "position": "#6f8fd8", "qkv": "#e56e28", "output_projection": "#f7bf8a",
    "mlp": "#11753f", "router": "#e4d379", "experts": "#49beb5", "shared_experts": "#94bb57", "mixer": "#843388", "norm": "#2a2a2a",
    "lm_head": "#1e3260", "other": "#999999", "vision": "#bd5689", "audio": "#ed9ebe", "projector": "#6b1844",
}  # fmt: skip

# Inches
WIDTH, LONGEST_BAR = 9.0, 0.84  # the longest bar's share of the axis; the rest is for its label
# Heights of total and active bars, gap between them, gap between models
TOTAL, ACTIVE, SLIT, GAP = 0.2, 0.12, 0.025, 0.12
LEGEND_ROW, LEGEND_COLUMNS, MARGIN, BELOW, ABOVE = 0.17, 5, 0.1, 0.42, 0.2
NOTE = 0.14  # height of a note
SMALL = 8.0  # points
MANY = 12  # with more models, the scale is repeated at the top
DPI = 150
STYLE: Any = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Verdana"],  # the first comes with the library, the second is as wide
    "font.size": SMALL,
    "text.parse_math": False,  # names may contain $
    "svg.fonttype": "none",  # keep text searchable
    "svg.hashsalt": "paramcount",
    "pdf.fonttype": 42,
}

TITLE = "Parameters by component"
METADATA: dict[Format, dict[str, Any]] = {  # reproducible: no dates
    "svg": {"Date": None, "Creator": None, "Title": TITLE},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None, "Title": TITLE},
}


class Bar(NamedTuple):
    """One bar: parameters by component, label, and position in inches from the top."""

    parts: Mapping[str, int]
    text: str
    top: float
    height: float

    @property
    def sum(self) -> int:
        return sum(self.parts.values())


class Line(NamedTuple):
    """The row of a model: name, middle in inches from the top, and the text shown instead of a bar, if any."""

    name: str
    middle: float
    instead: str


def format_of(path: str) -> Format:
    """The format for a file extension.

    >>> format_of("sizes.PNG")
    'png'

    Raises: ParamcountError for any other extension.
    """
    return choose_by_extension(path, ENDINGS, where="--plot")


def plot_rows(
    rows: Sequence[Mapping[str, Any]], *, format: Format = "svg", scale: Scale = "linear", paper: bool = True
) -> bytes:
    """The bar chart of rows from `views.compare.make_rows`. `paper`: white background, otherwise transparent."""
    for what, value, known in (("format", format, ENDINGS.values()), ("scale", scale, ("linear", "log"))):
        if value not in known:
            raise ParamcountError(
                f"= {make_printable(repr(value), 40)}",
                where=what,
                expected=", ".join(known),
                nearest=find_nearest(value, known),
            )
    if not rows:
        raise ParamcountError("no models to plot", expected="at least one")
    if len(rows) > MOST:
        raise ParamcountError(f"{len(rows):,} models in one plot", expected=f"at most {MOST:,}")
    try:
        import matplotlib
        from matplotlib.backends import backend_agg, backend_pdf, backend_svg
    except ImportError:
        raise ParamcountError("plots need the [plot] extra", expected="pip install 'paramcount[plot]'") from None
    canvas = {
        "svg": backend_svg.FigureCanvasSVG,
        "png": backend_agg.FigureCanvasAgg,
        "pdf": backend_pdf.FigureCanvasPdf,
    }[format]
    out = io.BytesIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about missing letters, which escape_missing_letters replaces
        matplotlib.rcdefaults()  # ignore the user's style
        matplotlib.rcParams.update(STYLE)
        figure = _make_figure(rows, scale, drawn=format != "svg")
        canvas(figure)
        figure.savefig(
            out,
            format=format,
            metadata=METADATA[format],
            dpi=DPI if format == "png" else "figure",
            transparent=not paper,
        )
    return out.getvalue()


def place_bars(rows: Sequence[Mapping[str, Any]]) -> tuple[list[Line], list[Bar], float]:
    """(rows, bars, height) of the plot, from top to bottom.

    >>> from paramcount.views.compare import make_rows
    >>> from paramcount.loading import select_models
    >>> [bar.text for bar in place_bars(make_rows(select_models(["gpt2-small", "mixtral-8x7b"])))[1]]
    ['124 M', '46.7 B', 'active 12.9 B']
    """
    lines, bars, top = [], [], GAP
    for row in rows:
        start = top
        name = make_printable(row["id"], 40) + (" *" if is_unverified(row) else "")
        if row["estimate"]:
            instead = f"third-party estimate: {make_printable(row['claimed_total'] or 'none', 90)}"
            top += TOTAL
        else:
            instead = ""
            bars.append(Bar({part: row[part] for part in COMPONENTS}, format_count(row["total"]), top, TOTAL))
            top += TOTAL
            if row["active"] != row["total"]:
                bars.append(Bar(row["active_components"], f"active {format_count(row['active'])}", top + SLIT, ACTIVE))
                top += SLIT + ACTIVE
        lines.append(Line(name, (start + top) / 2, instead))
        top += GAP
    return lines, bars, top


class Axis(NamedTuple):
    """The horizontal axis, from 0 to 1, with its ticks and label."""

    label: str
    ticks: tuple[tuple[float, str], ...]
    start: int  # the sum at 0
    end: int  # the sum at LONGEST_BAR
    log: bool

    def at(self, n: int) -> float:
        """The position of a sum."""
        if self.log:
            return (
                LONGEST_BAR
                * (math.log10(max(n, self.start)) - math.log10(self.start))
                / (math.log10(self.end) - math.log10(self.start))
            )
        return LONGEST_BAR * (n / self.end)


UNITS = (("", 0), ("K", 3), ("M", 6), ("B", 9), ("T", 12))


def make_linear_axis(sums: Sequence[int]) -> Axis:
    """A linear axis from 0, with round ticks.

    >>> [text for _, text in make_linear_axis([46_702_792_704]).ticks]
    ['0', '10 B', '20 B', '30 B', '40 B', '50 B']
    """
    end = max((*sums, 1))
    step = 10 ** (len(str(end)) - 1)
    step = next(s for s in (step * 2, step, step // 2, step // 5, 1) if s and (end // s >= 4 or s == 1))
    reach = end * 100 // int(100 * LONGEST_BAR)
    axis = Axis("parameters", (), 0, end, False)
    return axis._replace(ticks=tuple((axis.at(n), format_tick(n)) for n in range(0, reach + 1, step)))


def make_log_axis(sums: Sequence[int]) -> Axis:
    """A logarithmic axis that starts a decade below the smallest sum, so that its bar is visible.

    >>> [text for _, text in make_log_axis([124_439_808, 46_702_792_704]).ticks]
    ['10 M', '100 M', '1 B', '10 B', '100 B']
    """
    positive = [n for n in sums if n > 0] or [1]
    first = len(str(min(positive))) - 1
    if min(positive) < 2 * 10**first:
        first -= 1
    first, end = max(first, 0), max((*positive, 10))
    label = "parameters (log scale): the length of a bar shows its total,\ncomponents divide the bar by their shares of the total"
    axis = Axis(label, (), 10**first, max(end, 10 ** (first + 1)), True)
    decades = range(first, len(str(axis.end)) + 1)
    ticks = [(axis.at(10**k), format_tick(10**k)) for k in decades[:: max(1, len(decades) // 8)]]
    return axis._replace(ticks=tuple((x, text) for x, text in ticks if x <= 1))


def format_tick(n: int) -> str:
    """A tick label with its unit.

    >>> format_tick(500_000_000), format_tick(1_500_000_000_000), format_tick(0)
    ('500 M', '1.5 T', '0')
    """
    unit, digits = next((unit, digits) for unit, digits in reversed(UNITS) if n >= 10**digits or not digits)
    whole, rest = divmod(n, 10**digits)
    decimals = str(rest).rjust(digits, "0").rstrip("0") if rest else ""
    return f"{whole:,}{'.' if decimals else ''}{decimals} {unit}".rstrip()


def _make_figure(rows: Sequence[Mapping[str, Any]], scale: Scale, *, drawn: bool) -> Figure:
    """The plot. `drawn`: text becomes outlines, so only letters of the font can be shown."""
    from matplotlib.figure import Figure

    lines, bars, height = place_bars(rows)
    axis = (make_log_axis if scale == "log" else make_linear_axis)([bar.sum for bar in bars])
    names = [make_printable(escape_missing_letters(line.name), 46) if drawn else line.name for line in lines]
    left = min(max(map(_measure_name, names)) + 2 * MARGIN, WIDTH / 2)
    shown = [part for part in COMPONENTS if any(bar.parts[part] for bar in bars)]
    legend = LEGEND_ROW * math.ceil(len(shown) / LEGEND_COLUMNS) + 2 * MARGIN
    above = legend + (ABOVE if len(rows) > MANY else 0)
    notes = [axis.label, *(make_printable(line, 110) for line in describe_row_changes(rows))]
    notes += [UNVERIFIED] if any(is_unverified(row) for row in rows) else []
    below = BELOW + NOTE * "\n".join(notes).count("\n")
    whole = above + height + below
    figure = Figure(figsize=(WIDTH, whole))
    axes = figure.add_axes((left / WIDTH, below / whole, 1 - (left + MARGIN) / WIDTH, height / whole))
    axes.set_xlim(0, 1)
    axes.set_ylim(height, 0)  # inches from the top
    for bar in bars:
        _draw_bar(axes, bar, axis)
    for line in lines:
        if line.instead:
            axes.text(
                0.01,
                line.middle,
                escape_missing_letters(line.instead) if drawn else line.instead,
                va="center",
                style="italic",
            )
    axes.set_yticks([line.middle for line in lines], labels=names, fontsize=SMALL)
    axes.set_xticks([x for x, _ in axis.ticks], labels=[text for _, text in axis.ticks])
    axes.tick_params(length=0, labeltop=len(rows) > MANY)
    axes.grid(axis="x", color="#b8b8b8", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("\n".join(notes), loc="left")
    if shown:
        from matplotlib.patches import Patch

        handles = [Patch(facecolor=COLOURS[part], label=part) for part in shown]
        figure.legend(
            handles=handles, loc="upper left", ncols=LEGEND_COLUMNS, frameon=False, borderaxespad=0.4, handlelength=1.2
        )
    return figure


def _draw_bar(axes: Axes, bar: Bar, axis: Axis) -> None:
    """Draw the components of a bar; each takes its share of the length on any scale."""
    length, whole, before = axis.at(bar.sum), bar.sum, 0
    for part, n in bar.parts.items():
        if n:
            width = length * (n / whole)
            axes.barh(
                bar.top,
                width,
                bar.height,
                left=length * (before / whole),
                align="edge",
                color=COLOURS[part],
                linewidth=0,
            )
            before += n
    axes.text(
        length + 0.006,
        bar.top + bar.height / 2,
        bar.text,
        va="center_baseline",
        fontsize=SMALL if bar.height == TOTAL else SMALL - 1,
    )


def escape_missing_letters(text: str) -> str:
    """The text with letters that the font lacks replaced by escapes."""
    known = _list_letters()
    return "".join(c if ord(c) in known else c.encode("unicode_escape").decode("ascii") for c in text)


def _list_letters() -> Mapping[int, int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    known: Mapping[int, int] = get_font(findfont(FontProperties())).get_charmap()
    return known


def _measure_name(text: str) -> float:
    """The width of a name in inches; letters that the font lacks count as the widest."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    known = _list_letters()
    width, _, _ = text_to_path.get_text_width_height_descent(
        "".join(c if ord(c) in known else "W" for c in text), FontProperties(size=SMALL), ismath=False
    )
    return float(width) / 72
