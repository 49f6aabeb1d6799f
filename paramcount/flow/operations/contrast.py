"""How similar the vectors of two kinds of inputs are."""

from __future__ import annotations

from collections.abc import Sequence

from paramcount.flow.graph import Data
from paramcount.flow.operation import Array, Form, Operation, Pass, Shape


class Similarity(Operation, name="similarity", phrase="dot products", form=Form.PRODUCT):
    """The dot product of each vector of the first input with each of the second."""

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return inputs[0][0] * inputs[0][-1] * inputs[1][0]

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0] @ inputs[1].T


def similarity(x: Data, y: Data) -> Data:
    """Vectors [texts, d] and [images, d] to [texts, images]."""
    return Data(Similarity(), (x, y), (x.shape[0], y.shape[0]))
