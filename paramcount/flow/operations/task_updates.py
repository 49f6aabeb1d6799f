"""Low-rank updates that a model stores for several tasks, of which a run may ask for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.operation import Array, Operation, Pass, Shape


class TaskUpdate(Operation, name="low-rank update of a task"):
    """x itself: without a task, the matrix in front of which or behind which this stands is not updated.

    Source: arXiv:2409.10173 §4.2; LoRAParametrization of jinaai/xlm-roberta-flash-implementation.
    """

    phrase: ClassVar[str] = "low-rank update of the matrix beside it, if a task is asked for"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0]


def update_by_task(x: Data, name: str, first: tuple[Size, ...], second: tuple[Size, ...]) -> Data:
    """x, with the two factors of the update of each task, of these shapes."""
    shapes = {"lora_A": first, "lora_B": second}
    weights = (Weight(f"{name}.parametrizations.weight.0.{end}", "other", shape) for end, shape in shapes.items())
    return Data(TaskUpdate(), (x,), x.shape, tuple(weights))
