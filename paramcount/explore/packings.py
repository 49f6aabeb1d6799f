"""The bytes of a tensor in packed formats as data: expressions of its shape, with the cases that a format has."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from paramcount.costs.dtypes import parse_weight_format
from paramcount.counting import Tensor
from paramcount.counting.quantisation.storage import list_stored
from paramcount.explore.conditions import NoConditionsError, Run, Symbol, Tree, follow_all, get_tree
from paramcount.explore.pools import Pool
from paramcount.flow.walk import WeightRecord
from paramcount.sizes import Sizes

FORMATS = ("fp8", "int8", "int4")


class Packings(Pool):
    """The packings of a page, each once."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Hashable, list[int]] = {}

    def add_tensor(self, sizes: Sizes, record: WeightRecord) -> list[int]:
        """The position of a tensor's packing in each of FORMATS."""
        weight, stacked = record.weight, record.stacked
        rank = len(record.stored_shape)
        key = (type(sizes), record.name, weight.component, record.part, rank, stacked and stacked.merged)
        if key not in self.known:
            # One copy, whose shape is not a number yet
            tensor = Tensor(
                record.name, (1,) * rank, weight.component, record.part, weight.role, (), weight.splits, None, stacked
            )
            self.known[key] = [self.add(derive_packing(sizes, tensor, name)) for name in FORMATS]
        return self.known[key]


def derive_packing(sizes: Sizes, tensor: Tensor, name: str) -> Tree:
    """The bytes of a stored tensor in a format: a tree of decisions over its axes "0", "1", … with {"bytes"}."""
    plan = parse_weight_format(name).plan

    def measure(run: Run) -> Tree:
        shape: Sequence[Any] = [Symbol(run, str(i), n) for i, n in enumerate(tensor.shape)]
        rows = list_stored(sizes, [tensor._replace(shape=tuple(shape))], plan, hypothetical=True)
        total = sum(row.bytes for row in rows)
        if run.used:
            raise NoConditionsError(frozenset(run.used))
        return {"bytes": get_tree(total)}

    return follow_all(measure)
