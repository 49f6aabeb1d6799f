"""A zoo entry against the reference implementation, as tests/data/reference.json has frozen it."""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

from paramcount import zoo
from paramcount.counting import Count, count_sizes

REFERENCE = Path(__file__).parent / "data" / "reference.json"
TOTALS = ("total", "embedding", "lm_head", "buffers")


@lru_cache(maxsize=1)
def reference() -> dict[str, dict[str, Any]]:
    """{zoo id: what the reference implementation has}"""
    frozen: dict[str, dict[str, Any]] = json.loads(REFERENCE.read_text(encoding="utf-8"))
    return frozen


def shapes(count: Count) -> Counter[str]:
    """How many learned tensors the model has of each shape, tied ones once."""
    found: Counter[str] = Counter()
    for tensor in count.tensors:
        if tensor.part != "mtp" and tensor.role == "parameter" and tensor.tied_to is None:
            found["×".join(map(str, tensor.shape))] += tensor.copies
    return found


def differences(id: str) -> list[str]:
    """Where a zoo entry, counted anew, differs from its reference: empty where it is equal, tensor by tensor."""
    expected = reference().get(id)
    if expected is None:
        return [f"{id} is not in {REFERENCE.name}"]
    count = count_sizes(zoo.entry(id).sizes)
    found = [f"{name}: {getattr(count, name):,} instead of {expected[name]:,}" for name in TOTALS if getattr(count, name) != expected[name]]
    has, wants = shapes(count), Counter(expected["shapes"])
    return found + [f"{shape}: {has[shape]} tensors instead of {wants[shape]}" for shape in sorted(has | wants) if has[shape] != wants[shape]]
