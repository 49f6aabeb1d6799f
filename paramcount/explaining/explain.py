"""Explains the parameters of a model, a layer or an attention head by formulas."""

from __future__ import annotations

from paramcount.counting.tensors import sum_unreachable
from paramcount.explaining.build import build_explanation
from paramcount.explaining.explanation import Explanation
from paramcount.explaining.pieces import Piece, walk_model
from paramcount.zoo import Model


def explain_model(model: Model, *, layer: int | str | None = None, head: bool = False) -> Explanation:
    """The explanation of a model, of one of its layers, or of one attention head."""
    walk = walk_model(model.sizes, model.reading.head)
    if head:
        from paramcount.explaining.heads import explain_head  # most explanations do not need it

        return explain_head(model, walk, layer)
    if layer is not None:
        from paramcount.explaining.layers import explain_layer

        return explain_layer(model, walk, layer)
    main: list[Piece] = []
    mtp: list[Piece] = []
    buffers: list[Piece] = []
    for piece in walk.pieces:
        if piece.role == "parameter" and piece.part != "mtp":
            main.append(piece)
        elif piece.role == "parameter" and piece.tied_to is None:
            mtp.append(piece)
        elif piece.role == "buffer" and piece.part != "mtp":
            buffers.append(piece)
    not_counted = model.reading.not_counted
    notes = [f"not included in the total: {', '.join(not_counted)}"] if not_counted else []
    for reason, n in sum_unreachable(model.sizes, model.reading.head).items():
        notes.append(f"not included in the total: unreachable {n:,} ({reason})")
    return build_explanation(model, walk, main, {"MTP": mtp, "buffers": buffers}, notes=notes)
