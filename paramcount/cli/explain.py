"""paramcount explain MODEL"""

from __future__ import annotations

from paramcount.cli.options import MODEL, CommandRequest, Messages, define_command, option, print_messages
from paramcount.errors import ParamcountError


@define_command("explain", "llama-3.1-8b", MODEL)
@option("--tensors", "List every tensor: name, shape, repeats, count.")
@option(
    "--layer N", "Explain one layer: its index in the decoder, or stack and index, such as encoder.layers.3.", type=str
)
@option("--head", "Explain one attention head (in --layer, or in the first attention layer).")
def command(request: CommandRequest, tensors: bool, layer: str | None, head: bool) -> None:
    """Explain where the parameters come from: each component as a formula, with numbers, and its value.

    The sizes come first, the total last. For a mixture of experts, the active parameters are explained too. --format
    latex writes aligned equations; --format markdown writes a section for a model card."""
    from paramcount.explaining.explain import explain_model
    from paramcount.explaining.guides import describe_guides, list_guides
    from paramcount.explaining.render_tables import build_explanation_table, build_tensor_table
    from paramcount.zoo import count_model

    if tensors and (layer is not None or head):
        raise ParamcountError(f"--tensors cannot be combined with --{'head' if head else 'layer'}")
    model = request.load()
    if tensors:
        table = build_tensor_table(model.name, count_model(model))
    else:
        table = build_explanation_table(explain_model(model, layer=layer, head=head))
    request.emit_model(table, model)
    if request.table_format == "table" and not tensors and layer is None and not head:
        guides = describe_guides(list_guides(model, count_model(model)))
        print_messages(Messages(notes=(guides,) if guides else ()))
