"""Pictures as PDF files, through svglib and ReportLab: vectors, and text that can be selected."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

from paramcount.drawing.render import FONTS, find_fonts
from paramcount.errors import make_extra_error

SVG = "http://www.w3.org/2000/svg"
TEXT, SPAN = f"{{{SVG}}}text", f"{{{SVG}}}tspan"
LATIN = "Helvetica"  # one of the fonts that every reader of PDF files has, for Latin letters
WIDE = "DejaVu Sans"
SUPERSCRIPT = 0.75  # of the size of the text
RISE = 0.35


def convert_to_pdf(svg: str) -> bytes:
    """An SVG as a PDF file, in light colours. Raises: ParamcountError if the [pdf] extra is missing."""
    try:
        from reportlab.graphics import renderPDF
        from svglib.svglib import svg2rlg
    except ImportError:
        raise make_extra_error("a PDF", "pdf") from None
    font = choose_font(svg)
    root = ElementTree.fromstring(svg.replace(FONTS, font))  # noqa: S314  # an SVG that paramcount made
    sizes = read_font_sizes(svg)
    for parent in root.iter():
        for text in [child for child in parent if child.tag == TEXT and child.find(SPAN) is not None]:
            index = list(parent).index(text)
            parent.remove(text)
            for i, piece in enumerate(split_text(text, font, sizes)):
                parent.insert(index + i, piece)
    drawing = svg2rlg(io.StringIO(ElementTree.tostring(root, encoding="unicode")))
    return bytes(renderPDF.drawToString(drawing))


def choose_font(svg: str) -> str:
    """Helvetica, or the font that comes with matplotlib if the text has other letters than it has."""
    try:
        svg.encode("cp1252")
    except UnicodeEncodeError:
        from svglib.fonts import register_font

        for path, weight in zip(find_fonts(), ("normal", "bold")):
            register_font(WIDE, path, weight, rlgFontName=WIDE if weight == "normal" else f"{WIDE}-Bold")
        return WIDE if find_fonts() else LATIN
    return LATIN


def read_font_sizes(svg: str) -> dict[str, float]:
    """{class: font size in pixels}, from the style sheet."""
    return {name: float(size) for name, size in re.findall(r"\.([\w-]+)\{font-size:([\d.]+)px\}", svg)}


def split_text(text: ElementTree.Element, font: str, sizes: dict[str, float]) -> list[ElementTree.Element]:
    """A text with coloured or raised parts as one text per part, at its own place: svglib draws all parts of a centred
    text at its centre."""
    from reportlab.pdfbase.pdfmetrics import stringWidth

    classes = (text.get("class") or "").split()
    size = next((sizes[name] for name in classes if name in sizes), 10.0)
    if own := re.search(r"font-size:\s*([\d.]+)px", text.get("style") or ""):
        size = float(own[1])
    parts: list[tuple[str, str, bool]] = [(text.text or "", "", False)]  # words, class, raised
    for span in text:
        parts += [(span.text or "", span.get("class") or "", span.get("dy") is not None), (span.tail or "", "", False)]
    parts = [part for part in parts if part[0]]
    widths = [stringWidth(words, font, size * (SUPERSCRIPT if raised else 1)) for words, _, raised in parts]
    side = "start" if "start" in classes else "end" if "end" in classes else "middle"
    left = float(text.get("x") or 0) - {"start": 0.0, "middle": 0.5, "end": 1.0}[side] * sum(widths)
    pieces = []
    for (words, name, raised), width in zip(parts, widths):
        y = float(text.get("y") or 0) - (RISE * size if raised else 0)
        style = f"font-size:{size * (SUPERSCRIPT if raised else 1):g}px;text-anchor:start"
        kept = [word for word in classes if word not in ("start", "end")]
        place = {
            "class": " ".join([*kept, *([name] if name else [])]),
            "x": f"{left:.2f}",
            "y": f"{y:.2f}",
            "style": style,
        }
        piece = ElementTree.Element(TEXT, place)
        piece.text = words.replace(" ", "\u00a0")
        pieces.append(piece)
        left += width
    return pieces
