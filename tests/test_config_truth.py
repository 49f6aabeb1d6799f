"""Published configs of models that no entry of the zoo has, read and counted: equal to their truth, tensor shape by
tensor shape.

Each file of tests/data/config_truth holds a config.json with its source and what the reference implementation builds
from it, or what was derived by hand where none ships. Experts are compared one by one and without regard to their
orientation.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.counting.components import TOWERS
from paramcount.counting.count import Count
from paramcount.flow import TensorRow

TRUTH = sorted((Path(__file__).parent / "data" / "config_truth").glob("*.json"))


def count_shapes(count: Count, counts: str) -> Counter[str]:
    """How many learned tensors there are of each shape; of the language model alone where only that is compared."""
    found: Counter[str] = Counter()
    for tensor in count.tensors:
        if tensor.part == "mtp" or tensor.role != "parameter" or tensor.tied_to is not None:
            continue
        if counts == "total" or tensor.part not in TOWERS:
            for shape, copies in split_experts(tensor):
                found[shape] += copies
    return found


def split_experts(tensor: TensorRow) -> list[tuple[str, int]]:
    """A tensor as it is, or the matrices of its experts, gate and up apart."""
    if not tensor.stacked and not any(repeat.axis == "expert" for repeat in tensor.repeats):
        return [("×".join(map(str, tensor.shape)), tensor.copies)]
    shape, copies = (
        (list(tensor.shape[1:]), tensor.copies * tensor.shape[0])
        if tensor.stacked
        else (list(tensor.shape), tensor.copies)
    )
    widths = [width for _, width in tensor.splits] if len(tensor.splits) > 1 else []
    axis = next((i for i, n in enumerate(shape) if n == sum(widths)), 0)
    pieces = [[*shape[:axis], width, *shape[axis + 1 :]] for width in widths] or [shape]
    return [("×".join(map(str, sorted(piece))) + " expert", copies) for piece in pieces]


@pytest.mark.parametrize("path", TRUTH, ids=lambda path: path.stem)
def test_a_published_config_json_is_counted_as_its_truth(path: Path) -> None:
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    count = pc.count(facts["config"])
    assert getattr(count, facts["counts"]) == facts["total"]
    assert (count.embedding, count.lm_head) == (facts["embedding"], facts["lm_head"])
    assert count.buffers == facts["buffers"] or facts["counts"] == "language_model"
    assert count_shapes(count, facts["counts"]) == Counter(facts["shapes"])
    assert sum(tensor.parameters for tensor in count.tensors if tensor.part != "mtp") == count.total
    assert 0 < count.active <= count.total
