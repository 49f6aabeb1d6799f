"""The bytes of a tensor in packed formats as data: expressions of its shape, with the cases that a format has."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

from paramcount.costs.dtypes import parse_weight_format
from paramcount.counting.quantisation.storage import list_stored, merge_facts
from paramcount.explore.conditions import NoConditionsError, SymbolicRun, follow_all
from paramcount.flow import TensorRow
from paramcount.sizes import Sizes
from paramcount.symbolic.polynomials import make_symbols
from paramcount.symbolic.trees import Tree, to_json

FORMATS = {"fp8": "FP8 (128 × 128 blocks)", "int8": "INT8 (per row)", "int4": "INT4 (group 128)"}


class Pool:
    """Data, each once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}  # {JSON: position}

    def add(self, data: Any) -> int:
        """The position of data."""
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        return self.numbers.setdefault(text, len(self.numbers))

    def list_all(self) -> list[Any]:
        return [json.loads(text) for text in self.numbers]


class Packings(Pool):
    """The packings of a page, each once."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Hashable, list[int]] = {}

    def add_tensor(self, sizes: Sizes, row: TensorRow) -> list[int]:
        """The position of a tensor's packing in each of FORMATS."""
        facts, name = merge_facts(sizes), row.name[max(0, row.name.rfind("{")) :]  # a layer's place decides nothing
        shape = len(row.shape), row.stacked and row.stacked.merged
        key = (*facts[:2], name, row.component, row.part, row.role, row.tied_to, row.float32, *shape)
        if key not in self.known:
            self.known[key] = [self.add(to_json(derive_packing(sizes, row, name))) for name in FORMATS]
        return self.known[key]


def derive_packing(sizes: Sizes, row: TensorRow, name: str) -> Tree:
    """The bytes of one stored tensor in a format: a tree of decisions over its axes "0", "1", …"""
    plan = parse_weight_format(name).plan
    names = " ".join(map(str, range(len(row.shape))))

    def measure(run: SymbolicRun) -> Tree:
        matrix, stacked = make_symbols(names), None
        if row.stacked and not row.stacked.merged:
            stacked, matrix = row.stacked._replace(count=matrix[0]), matrix[1:]
        tensor = row._replace(matrix=matrix, stacked=stacked, repeats=())
        total = sum(stored.bytes for stored in list_stored(sizes, [tensor], plan, hypothetical=True))
        if run.used:
            raise NoConditionsError(frozenset(run.used))
        return run.make_tree(total)

    return follow_all(measure, dict.fromkeys(names.split(), 1))
