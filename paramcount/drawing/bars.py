"""Bars of many models: their components stacked, in total and for one token, as SVG, PNG or PDF."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from paramcount.counting.count import COMPONENTS
from paramcount.errors import ParamcountError, find_nearest, make_printable
from paramcount.output.numbers import format_count
from paramcount.output.tables import choose_by_extension
from paramcount.views.compare import settings, unverified

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Scale = Literal["linear", "log"]
Format = Literal["svg", "png", "pdf"]
ENDINGS: dict[str, Format] = {".svg": "svg", ".png": "png", ".pdf": "pdf"}
MOST = 1000  # models in one picture: an image has so many rows of pixels at most

# One colour per component, whichever are drawn: a hue for each kind (tables blue, attention orange, feed-forward green, towers pink),
# and apart in lightness as well, so that they stay apart for the colour-blind and in print.
COLOURS = {
    "embedding": "#487db3", "other_embedding": "#a1d4f0", "position": "#6f8fd8", "qkv": "#e56e28", "output_projection": "#f7bf8a",
    "mlp": "#11753f", "router": "#e4d379", "experts": "#49beb5", "shared_experts": "#94bb57", "mixer": "#843388", "norm": "#2a2a2a",
    "lm_head": "#1e3260", "other": "#999999", "vision": "#bd5689", "audio": "#ed9ebe", "projector": "#6b1844",
}  # fmt: skip

# Inches
WIDTH, LONGEST_BAR = 9.0, 0.84  # the longest bar's share of the axis; the rest is for what is written behind it
TOTAL, ACTIVE, SLIT, GAP = 0.2, 0.12, 0.025, 0.12  # height of a total's bar, of an active one below it, what parts them, what parts models
LEGEND_ROW, LEGEND_COLUMNS, MARGIN, BELOW, ABOVE = 0.17, 5, 0.1, 0.42, 0.2
NOTE = 0.14  # height of a line below
SMALL = 8.0  # points
MANY = 12  # models from which on the scale is written at the top as well
DPI = 150
STYLE: Any = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Verdana"],  # the first comes with the library, the second is as wide
    "font.size": SMALL,
    "text.parse_math": False,  # a name with $ in it is a name
    "svg.fonttype": "none",  # text stays text: found, copied and read aloud
    "svg.hashsalt": "paramcount",
    "pdf.fonttype": 42,
}

TITLE = "Parameters by component"
METADATA: dict[Format, dict[str, Any]] = {  # nothing that differs from day to day
    "svg": {"Date": None, "Creator": None, "Title": TITLE},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None, "Title": TITLE},
}


class Bar(NamedTuple):
    """One bar: how much of each component, its place in inches from the top, and what is written behind it."""

    parts: Mapping[str, int]
    text: str
    top: float
    height: float

    @property
    def sum(self) -> int:
        return sum(self.parts.values())


class Line(NamedTuple):
    """A model's place in the picture: its name, its middle in inches from the top, and what stands there instead of a bar."""

    name: str
    middle: float
    instead: str


def format_of(path: str) -> Format:
    """The format that a file's ending chooses.

    >>> format_of("sizes.PNG")
    'png'

    Raises: ParamcountError for any other ending.
    """
    return choose_by_extension(path, ENDINGS, "plot", where="--plot")


def plot_rows(rows: Sequence[Mapping[str, Any]], *, format: Format = "svg", scale: Scale = "linear", paper: bool = True) -> bytes:
    """The picture of rows as `comparing.rows_of` gives them. `paper`: on white, else on whatever is behind it."""
    for what, value, known in (("format", format, ENDINGS.values()), ("scale", scale, ("linear", "log"))):
        if value not in known:
            raise ParamcountError(f"= {make_printable(repr(value), 40)}", where=what, expected=", ".join(known), nearest=find_nearest(value, known))
    if not rows:
        raise ParamcountError("no models to plot", expected="at least one")
    if len(rows) > MOST:
        raise ParamcountError(f"{len(rows):,} models in one plot", expected=f"at most {MOST:,}")
    try:
        import matplotlib
        from matplotlib.backends import backend_agg, backend_pdf, backend_svg
    except ImportError:
        raise ParamcountError("plots need the [plot] extra", expected="pip install 'paramcount[plot]'") from None
    canvas = {"svg": backend_svg.FigureCanvasSVG, "png": backend_agg.FigureCanvasAgg, "pdf": backend_pdf.FigureCanvasPdf}[format]
    out = io.BytesIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font lacks: `drawable` has seen to them
        matplotlib.rcdefaults()  # whatever the reader's own style is
        matplotlib.rcParams.update(STYLE)
        figure = _figure(rows, scale, drawn=format != "svg")
        canvas(figure)
        figure.savefig(out, format=format, metadata=METADATA[format], dpi=DPI if format == "png" else "figure", transparent=not paper)
    return out.getvalue()


def placed(rows: Sequence[Mapping[str, Any]]) -> tuple[list[Line], list[Bar], float]:
    """Where each model and its bars stand, from the top down, and the height of all of them.

    >>> from paramcount.views.compare import rows_of
    >>> from paramcount.zoo.names import select_models
    >>> [bar.text for bar in placed(rows_of(select_models(["gpt2-small", "mixtral-8x7b"])))[1]]
    ['124 M', '46.7 B', 'active 12.9 B']
    """
    lines, bars, top = [], [], GAP
    for row in rows:
        start = top
        name = make_printable(row["id"], 40) + (" *" if unverified(row) else "")
        if row["estimate"]:
            instead = f"no bar: an estimate, claimed {make_printable(row['claimed_total'] or 'nothing', 90)}"
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
    """Where a sum ends on the horizontal axis, which goes from 0 to 1; its ticks and what it says of itself."""

    label: str
    ticks: tuple[tuple[float, str], ...]
    start: int  # the sum at 0
    end: int  # the sum at LONGEST_BAR
    log: bool

    def at(self, n: int) -> float:
        """The place of a sum."""
        if self.log:
            return LONGEST_BAR * (math.log10(max(n, self.start)) - math.log10(self.start)) / (math.log10(self.end) - math.log10(self.start))
        return LONGEST_BAR * (n / self.end)


UNITS = (("", 0), ("K", 3), ("M", 6), ("B", 9), ("T", 12))


def linear(sums: Sequence[int]) -> Axis:
    """From 0, with round ticks.

    >>> [text for _, text in linear([46_702_792_704]).ticks]
    ['0', '10 B', '20 B', '30 B', '40 B', '50 B']
    """
    end = max((*sums, 1))
    step = 10 ** (len(str(end)) - 1)
    step = next(s for s in (step * 2, step, step // 2, step // 5, 1) if s and (end // s >= 4 or s == 1))
    reach = end * 100 // int(100 * LONGEST_BAR)
    axis = Axis("parameters", (), 0, end, False)
    return axis._replace(ticks=tuple((axis.at(n), written(n)) for n in range(0, reach + 1, step)))


def logarithmic(sums: Sequence[int]) -> Axis:
    """From the decade below the smallest sum, so that its bar can be seen.

    >>> [text for _, text in logarithmic([124_439_808, 46_702_792_704]).ticks]
    ['10 M', '100 M', '1 B', '10 B', '100 B']
    """
    positive = [n for n in sums if n > 0] or [1]
    first = len(str(min(positive))) - 1
    if min(positive) < 2 * 10**first:
        first -= 1
    first, end = max(first, 0), max((*positive, 10))
    label = "parameters, on a log scale: a bar's length shows its sum,\nand its components divide that length by their shares"
    axis = Axis(label, (), 10**first, max(end, 10 ** (first + 1)), True)
    decades = range(first, len(str(axis.end)) + 1)
    ticks = [(axis.at(10**k), written(10**k)) for k in decades[:: max(1, len(decades) // 8)]]
    return axis._replace(ticks=tuple((x, text) for x, text in ticks if x <= 1))


def written(n: int) -> str:
    """A round number with its unit.

    >>> written(500_000_000), written(1_500_000_000_000), written(0)
    ('500 M', '1.5 T', '0')
    """
    unit, digits = next((unit, digits) for unit, digits in reversed(UNITS) if n >= 10**digits or not digits)
    whole, rest = divmod(n, 10**digits)
    decimals = str(rest).rjust(digits, "0").rstrip("0") if rest else ""
    return f"{whole:,}{'.' if decimals else ''}{decimals} {unit}".rstrip()


def _figure(rows: Sequence[Mapping[str, Any]], scale: Scale, *, drawn: bool) -> Figure:
    """`drawn`: letters become outlines, so that only those can be shown which the font has."""
    from matplotlib.figure import Figure

    lines, bars, height = placed(rows)
    axis = (logarithmic if scale == "log" else linear)([bar.sum for bar in bars])
    names = [make_printable(drawable(line.name), 46) if drawn else line.name for line in lines]
    left = min(max(map(_inches, names)) + 2 * MARGIN, WIDTH / 2)
    shown = [part for part in COMPONENTS if any(bar.parts[part] for bar in bars)]
    legend = LEGEND_ROW * math.ceil(len(shown) / LEGEND_COLUMNS) + 2 * MARGIN
    above = legend + (ABOVE if len(rows) > MANY else 0)
    notes = [axis.label, *(make_printable(line, 110) for line in settings(rows))]
    notes += ["* unverified: nobody has counted it independently"] if any(unverified(row) for row in rows) else []
    below = BELOW + NOTE * "\n".join(notes).count("\n")
    whole = above + height + below
    figure = Figure(figsize=(WIDTH, whole))
    axes = figure.add_axes((left / WIDTH, below / whole, 1 - (left + MARGIN) / WIDTH, height / whole))
    axes.set_xlim(0, 1)
    axes.set_ylim(height, 0)  # inches from the top
    for bar in bars:
        _stack(axes, bar, axis)
    for line in lines:
        if line.instead:
            axes.text(0.01, line.middle, drawable(line.instead) if drawn else line.instead, va="center", style="italic")
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
        figure.legend(handles=handles, loc="upper left", ncols=LEGEND_COLUMNS, frameon=False, borderaxespad=0.4, handlelength=1.2)
    return figure


def _stack(axes: Axes, bar: Bar, axis: Axis) -> None:
    """A bar's components side by side; each takes its share of the length, whatever the scale."""
    length, whole, before = axis.at(bar.sum), bar.sum, 0
    for part, n in bar.parts.items():
        if n:
            width = length * (n / whole)
            axes.barh(bar.top, width, bar.height, left=length * (before / whole), align="edge", color=COLOURS[part], linewidth=0)
            before += n
    axes.text(length + 0.006, bar.top + bar.height / 2, bar.text, va="center_baseline", fontsize=SMALL if bar.height == TOTAL else SMALL - 1)


def drawable(text: str) -> str:
    """The text with every letter that the font of pictures lacks as its escape."""
    known = _letters()
    return "".join(c if ord(c) in known else c.encode("unicode_escape").decode("ascii") for c in text)


def _letters() -> Mapping[int, int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    known: Mapping[int, int] = get_font(findfont(FontProperties())).get_charmap()
    return known


def _inches(text: str) -> float:
    """How wide a name is; a letter that the font lacks counts as its widest."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    known = _letters()
    width, _, _ = text_to_path.get_text_width_height_descent("".join(c if ord(c) in known else "W" for c in text), FontProperties(size=SMALL), ismath=False)
    return float(width) / 72
