"""Explains the parameters of a model, a layer or an attention head by formulas."""

from __future__ import annotations

from paramcount.counting.tensors import sum_unreachable
from paramcount.errors import join_words
from paramcount.explaining.build import build_explanation
from paramcount.explaining.explanation import Explanation
from paramcount.explaining.pieces import PieceWalk, walk_model
from paramcount.symbolic.polynomials import decide_by
from paramcount.zoo import Model

NOT_INCLUDED = {"MTP": "mtp", "buffers": "buffer"}  # {name: kind of tensors}


def explain_model(model: Model, *, layer: int | str | None = None, head: bool = False) -> Explanation:
    """The explanation of a model, of one of its layers, or of one attention head."""
    walk = walk_model(model.sizes, model.reading.head)
    with decide_by(None):  # two formulas are written as one only if they are the same for all sizes
        return explain_walk(model, walk, layer, head)


def explain_walk(model: Model, walk: PieceWalk, layer: int | str | None, head: bool) -> Explanation:
    """The explanation of the weights of a model, of one of its layers, or of one attention head."""
    if head:
        from paramcount.explaining.heads import explain_head  # most explanations do not need it

        return explain_head(model, walk, layer)
    if layer is not None:
        from paramcount.explaining.layers import explain_layer

        return explain_layer(model, walk, layer)
    main = [row for row in walk.rows if row.kind in ("total", "tied") and row.role == "parameter"]
    others = {name: [row for row in walk.rows if row.kind == kind] for name, kind in NOT_INCLUDED.items()}
    not_counted = model.reading.not_counted
    notes = [f"not included in the total: {', '.join(not_counted)}"] if not_counted else []
    if walk.conditions:
        notes.append(f"the formulas hold if {join_words(map(str, walk.conditions), 'and')}")
    for reason, n in sum_unreachable(model.sizes, model.reading.head).items():
        notes.append(f"not included in the total: unreachable {n:,} ({reason})")
    return build_explanation(model, walk, main, others, notes=notes)
