"""Preview pictures: the map of a model's parameters as a PNG file of few colours."""

from __future__ import annotations

import io
from importlib.util import find_spec

from paramcount.drawing.render import find_fonts
from paramcount.explore.site.frame import PREVIEW_SIZE

COLOURS = 16  # of a picture: those of the components, and shades at the edges of letters
LEVEL = 6  # of compression


def has_previews() -> bool:
    """Whether the libraries of the [plot] extra that draw pictures are there."""
    return all(find_spec(name) for name in ("resvg_py", "PIL"))


def draw_preview(svg: str) -> bytes:
    """A map as a PNG file."""
    import resvg_py
    from PIL import Image

    fonts, family = find_fonts(), "DejaVu Sans"
    png = resvg_py.svg_to_bytes(svg_string=svg, width=PREVIEW_SIZE[0], font_files=fonts, sans_serif_family=family)
    with Image.open(io.BytesIO(bytes(png))) as image:
        few = image.convert("RGB").quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    file = io.BytesIO()
    few.save(file, "PNG", compress_level=LEVEL)
    return file.getvalue()
