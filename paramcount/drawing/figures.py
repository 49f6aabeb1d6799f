"""Figures of matplotlib as SVG, PNG or PDF files that do not depend on the user's style or on the date."""

from __future__ import annotations

import io
import logging
import os
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from paramcount.errors import make_extra_error
from paramcount.output.files import choose_by_extension

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Format = Literal["svg", "png", "pdf"]
ENDINGS: dict[str, Format] = {".svg": "svg", ".png": "png", ".pdf": "pdf"}
FONT_SIZE = 8.0  # points
DPI = 150
STYLE: Any = {  # matplotlib types the keys, not the values
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Verdana"],  # the first comes with matplotlib, the second is as wide
    "font.size": FONT_SIZE,
    "text.parse_math": False,  # names may contain $
    "svg.fonttype": "none",  # keep text searchable
    "svg.hashsalt": "paramcount",
    "pdf.fonttype": 42,
}
METADATA: dict[Format, dict[str, str | None]] = {  # reproducible: no dates
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def check_plot(path: str) -> Format:
    """The format for the extension of a file, before anything is computed.

    Raises: ParamcountError if the extension is unknown, or if matplotlib is missing.
    """
    format = choose_by_extension(path, ENDINGS, where="--plot")
    silence_matplotlib()
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise make_extra_error("a plot", "plot") from None
    return format


def silence_matplotlib() -> None:
    """Keep matplotlib from opening windows and from logging messages about the user's style."""
    os.environ["MPLBACKEND"] = "agg"
    logging.getLogger("matplotlib").setLevel(logging.CRITICAL)


def save_figure(make: Callable[[], Figure], format: Format, title: str, *, transparent: bool = False) -> bytes:
    """The bytes of a file with the figure that `make` returns. Raises: ParamcountError if matplotlib is missing."""
    try:
        import matplotlib
        from matplotlib.backends import backend_agg, backend_pdf, backend_svg
    except ImportError:
        raise make_extra_error("a plot", "plot") from None
    canvases = {
        "svg": backend_svg.FigureCanvasSVG,
        "png": backend_agg.FigureCanvasAgg,
        "pdf": backend_pdf.FigureCanvasPdf,
    }
    metadata = METADATA[format] | ({} if format == "png" else {"Title": title})
    content = io.BytesIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about missing letters, which escape_missing_letters replaces
        matplotlib.rcdefaults()  # ignore the user's style
        matplotlib.rcParams.update(STYLE)
        figure = make()
        canvases[format](figure)
        dpi: float | Literal["figure"] = DPI if format == "png" else "figure"
        figure.savefig(content, format=format, metadata=metadata, dpi=dpi, transparent=transparent)
    return content.getvalue()


def escape_missing_letters(text: str) -> str:
    """The text with letters that the font lacks replaced by escapes."""
    letters = list_letters()
    return "".join(c if ord(c) in letters else c.encode("unicode_escape").decode("ascii") for c in text)


def list_letters() -> Mapping[int, int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    letters: Mapping[int, int] = get_font(findfont(FontProperties())).get_charmap()
    return letters
