"""Where a model's parameters come from, formula by formula."""

from __future__ import annotations

from paramcount.explaining.building import explanation
from paramcount.explaining.explanation import Explanation
from paramcount.explaining.pieces import walk
from paramcount.names import load
from paramcount.stored import sum_unreachable


def explain(spec: object, *, layer: int | str | None = None, head: bool = False, download: bool = False) -> Explanation:
    """Where a model's parameters come from: for each component the formula in named sizes, the same with its numbers, and the value.

    `spec`: as for `paramcount.load`. `layer`: one layer alone: an index of the decoder's stack, or a stack of the checkpoint with one,
    such as "model.encoder.layers.3". `head`: one attention head, of that layer or the first that has any.

    >>> line = explain("llama-3.1-8b").components[1].lines[0]
    >>> line.formula, line.numbers, line.value
    ('n_layers · d_model · d_head · (n_heads + 2·n_kv_heads)', '32 · 4,096 · 128 · (32 + 2·8)', 805306368)

    Units: parameters. Raises: ParamcountError as `paramcount.load` does; for a layer that is not there, or without heads where one is asked for.
    """
    model = load(spec, download=download)
    found = walk(model.sizes, model.reading.head)
    if head:
        from paramcount.explaining.heads import one_head  # loaded where asked for

        return one_head(model, found, layer)
    if layer is not None:
        from paramcount.explaining.layers import one_layer

        return one_layer(model, found, layer)
    pieces = [piece for piece in found.pieces if piece.role == "parameter" and piece.part != "mtp"]
    beside = {
        "MTP": [piece for piece in found.pieces if piece.part == "mtp" and piece.role == "parameter" and piece.tied_to is None],
        "buffers": [piece for piece in found.pieces if piece.part != "mtp" and piece.role == "buffer"],
    }
    left_out = model.reading.not_counted
    remarks = [f"not counted: {', '.join(left_out)}"] if left_out else []
    for reason, n in sum_unreachable(model.sizes, model.reading.head).items():
        remarks.append(f"unreachable {n:,}, not in the total: {reason}")
    return explanation(model, found, pieces, beside, remarks=remarks)
