"""Where a model's parameters come from, formula by formula."""

from __future__ import annotations

from paramcount.counting.tensors import sum_unreachable
from paramcount.explaining.build import explanation
from paramcount.explaining.explanation import Explanation
from paramcount.explaining.pieces import walk
from paramcount.zoo import Model


def explain_model(model: Model, *, layer: int | str | None = None, head: bool = False) -> Explanation:
    """The explanation of a model, of one of its layers, or of one attention head."""
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
