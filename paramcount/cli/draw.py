"""paramcount draw MODEL"""

from __future__ import annotations

from paramcount.cli.options import (
    MODEL,
    CommandRequest,
    Messages,
    define_command,
    option,
    print_messages,
    write_picture,
)
from paramcount.cli.quantities import LENGTH
from paramcount.errors import ParamcountError
from paramcount.zoo import Model


@define_command("draw", "gpt2-small -o gpt2.svg", MODEL, prints_table=False)
@option("-o,--output FILE", "Write to FILE.svg, .html, .png or .pdf, or into a directory (default: MODEL.svg).")
@option("--animate FILE", "Write a walk through one layer to FILE.gif, .webp or .mp4 (needs the [animate] extra).")
@option("--layer N", "Draw only layer N of the decoder, counted from 0.")
@option("--tokens N", "Number of tokens (default: 1,024 or the model's maximum).", type=LENGTH)
def command(
    request: CommandRequest, output: str | None, animate: str | None, layer: int | None, tokens: int | None
) -> None:
    """Draw every matrix of a model to scale, in the order of the forward pass.

    Activations are filled blue, weights grey. Edges of the same colour have the same size. Identical layers are drawn
    once.

    With --animate, a token moves through the steps of one layer in ten seconds. Each step is marked in the drawing and
    explained below it. The layer is the first one of the most common kind, unless --layer selects another. If layers
    have no indices, as in a draft head, it moves through all steps.
    """
    if animate is not None:
        if output is not None:
            raise ParamcountError("--animate cannot be combined with --output")
        write_animation(animate, request, layer, tokens)
        return
    from paramcount.drawing.pictures import draw_model
    from paramcount.drawing.render import ENDINGS, render_file
    from paramcount.tracing.run import check_length

    def draw(model: Model, format: str) -> str | bytes:
        print_messages(Messages(warnings=tuple(check_length(model, tokens or 1))))
        return render_file(draw_model(model, tokens=tokens, layer=layer), format)

    write_picture(request, output, ENDINGS, draw)


def write_animation(path: str, request: CommandRequest, layer: int | None, tokens: int | None) -> None:
    from paramcount.drawing.animation import make_film, render_animation
    from paramcount.drawing.films import ENDINGS, find_encoder
    from paramcount.output.files import choose_by_extension, write_atomically

    format = choose_by_extension(path, ENDINGS, where="--animate")
    find_encoder(format)  # a missing extra is an error before the work begins
    model = request.load()
    print_messages(request.collect_messages([model]))
    write_atomically(path, render_animation(make_film(model, tokens=tokens, layer=layer), format), "--animate")
