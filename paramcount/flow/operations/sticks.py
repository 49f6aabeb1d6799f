"""Stick-breaking attention: weights of keys without a softmax."""

from __future__ import annotations

from paramcount.flow.graph import make_step
from paramcount.flow.operation import Array, np
from paramcount.flow.operations.attention import OnScores
from paramcount.flow.operations.elementwise import softplus


@make_step("break sticks", OnScores, phrase="each earlier key takes its share, σ(score), of what nearer keys leave")
def break_sticks(scores: Array) -> Array:
    """Scores [heads, n, m] to weights, whose sum is at most 1. A token does not see itself.

    Source: arXiv:2410.17980, section 3.
    """
    n, m = scores.shape[-2:]
    earlier = np.tri(n, m, m - n - 1, dtype=bool)
    left = np.where(earlier, -softplus(scores), np.float32(0))  # log(1 - share)
    nearer = np.cumsum(left[..., ::-1], axis=-1)[..., ::-1] - left
    return np.asarray(np.where(earlier, np.exp(nearer - softplus(-scores)), np.float32(0)), dtype=np.float32)
