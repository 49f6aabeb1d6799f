"""paramcount map MODEL"""

from __future__ import annotations

from paramcount.cli.options import MODEL, CommandRequest, define_command, option, write_picture


@define_command("map", "deepseek-v3 -o deepseek-v3.svg", MODEL, prints_table=False)
@option("-o,--output FILE", "Write to FILE.svg, .png or .pdf, or into a directory (default: MODEL.svg).")
@option("--social", "Draw the map for a link preview: 1200 × 630 pixels, larger text.")
def command(request: CommandRequest, output: str | None, social: bool) -> None:
    """Draw every tensor of a model as a rectangle, its area in proportion to its parameters.

    Tensors are grouped by part, layers and component. Each copy in a layer or an expert is a cell; the experts that
    are active for one token are dark.
    """
    from paramcount.drawing.map_svg import ENDINGS, render_map_file
    from paramcount.drawing.parameter_map import make_map

    write_picture(
        request, output, ENDINGS, lambda model, format: render_map_file(make_map(model, social=social), format)
    )
