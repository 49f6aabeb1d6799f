"""Multi-head latent attention (MLA) as engines compute it while decoding: over the compressed latents.

The reference expands the latents of all cached tokens to keys and values. Engines multiply q by the up-projection of
the keys instead, and the result by that of the values: as many multiply-adds as expanding one token.

Source: arXiv:2405.04434, section 2.1.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paramcount.flow import multiply
from paramcount.tracing.trace import Step

UP_PROJECTION = "qkv.kv_up"


def absorb_up_projections(
    steps: Sequence[Step], count_scores: Callable[[Step], Any] | None = None
) -> Mapping[int, Any]:
    """{position of a step: its multiply-adds in one layer} of the steps of MLA that decode one token; empty without it.

    `count_scores`: pairs of a query and a key of one head; default: all, visible or masked. Sizes are integers or
    polynomials.
    """
    found: dict[int, Any] = {}
    latent: Any
    outputs: Any
    values: Any
    width: Any
    at = 0
    up: Step | None = None
    scores: Step | None = None
    for i, step in enumerate(steps):
        if step.component == UP_PROJECTION:
            up, scores = step, None
            latent, outputs = step.weights[0].shape
            found[i] = latent * outputs
        elif up is not None and step.product and not step.weights:
            if scores is None or not scores.product:  # QKᵀ comes first, · V after it
                scores, at = step, i
                continue
            heads, width, values = scores.heads, scores.product.left[-1], step.product.out[-1]
            pairs = count_scores(scores) if count_scores else count_pairs(scores)
            keys = outputs - heads * values  # of all heads, without what rotary positions rotate
            found[at] = pairs * (heads * latent + heads * width - keys)
            found[i] = pairs * heads * latent
            up = None
    return found


def count_pairs(scores: Step) -> Any:
    """Pairs of a query and a key of one head."""
    sizes: Any = scores.product.out if scores.product else ()
    return multiply(sizes)


def count_visible_pairs(scores: Step) -> int:
    """The pairs that no mask hides."""
    width: Any = scores.product.left[-1] if scores.product else 1
    visible: int = (scores.visible_multiply_adds or 0) // (scores.heads * width)
    return visible
