"""ALiBi for tokens that see later ones, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from paramcount.flow.graph import Data, Size
from paramcount.flow.operation import Array, Pass, Shape, np
from paramcount.flow.operations.relations import Alibi, find_alibi_slopes, find_distances


class SymmetricAlibi(Alibi, name="ALiBi on both sides", saves_inputs=False, reads_only_lengths=True):
    """ALiBi with the distance to a later token counted as that to an earlier one: [n, m, heads].

    Source: arXiv:2310.19923 §3.1.
    """

    phrase: ClassVar[str] = "bias on the attention scores, proportional to the distance on either side"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return (np.abs(find_distances(run))[..., None] * -find_alibi_slopes(shape[-1])).astype(np.float32)


def symmetric_alibi(q: Data, heads: Size) -> Data:
    return Data(SymmetricAlibi(), (q,), ("tokens", "tokens", heads))
