"""Preview pictures: the map of a model's parameters as a PNG file of few colours."""

from __future__ import annotations

import io
from importlib.util import find_spec

from paramcount.drawing.colours import COLOURS
from paramcount.drawing.render import find_fonts
from paramcount.explore.site.frame import PREVIEW_SIZE

GREYS = ("#ffffff", "#1f2328", "#59636e", "#9aa0a6", "#d0d7de")  # of paper and letters, and between them
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
    palette = Image.new("P", (1, 1))
    palette.putpalette(list_colours())
    with Image.open(io.BytesIO(bytes(png))) as image:
        few = image.convert("RGB").quantize(palette=palette, dither=Image.Dither.NONE)
    file = io.BytesIO()
    few.save(file, "PNG", compress_level=LEVEL)
    return file.getvalue()


def list_colours() -> list[int]:
    """Red, green and blue of each colour: of components, darker if active and lighter under a grid, and of text."""
    colours = [tuple(bytes.fromhex(colour[1:])) for colour in (*COLOURS.values(), *GREYS)]
    mixed = [tuple((n + shade) // 2 for n in colour) for colour in colours[: len(COLOURS)] for shade in (0, 255)]
    return [n for colour in (*colours, *mixed) for n in colour]
