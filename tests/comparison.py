"""A zoo entry against the reference implementation, as the file of its model type has frozen it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import paramcount.zoo as zoo
from paramcount.counting.count import Count, count_sizes
from paramcount.counting.tensors import list_unreachable
from paramcount.flow import TensorRow
from paramcount.sizes import build_as_reference
from tests.type_files import load_all

TOTALS = ("total", "embedding", "lm_head", "buffers")


@cache
def load_zoo_facts(kind: str) -> dict[str, dict[str, Any]]:
    """{zoo id: facts}, which the file of the entry's architecture holds."""
    return dict(sorted((id, facts) for table in load_all(kind).values() for id, facts in table.items()))


def load_reference() -> dict[str, dict[str, Any]]:
    """{zoo id: what the reference implementation has}"""
    return load_zoo_facts("reference")


def load_configs() -> dict[str, dict[str, Any]]:
    """{zoo id: its published config.json, as the source of the entry has it}"""
    return load_zoo_facts("zoo_configs")


def list_learned(count: Count) -> Iterator[TensorRow]:
    """The learned tensors of the model, tied ones once and unreachable ones too."""
    for tensor in (*count.tensors, *(tensor for tensor, _ in list_unreachable(count.sizes, count.head))):
        if tensor.kind in ("total", "unreachable"):
            yield tensor


def count_shapes(count: Count) -> Counter[str]:
    """How many learned tensors the model has of each shape."""
    found: Counter[str] = Counter()
    for tensor in list_learned(count):
        found["×".join(map(str, tensor.shape))] += tensor.copies
    return found


def count_anew(id: str) -> Count:
    """The count of a zoo entry as the reference builds it, from its declaration as it is now."""
    model = zoo.load_entry(id)
    return count_sizes(build_as_reference(model.sizes), head=model.reading.head)


def find_differences(id: str, count: Count) -> list[str]:
    """Where the count of a zoo entry differs from its reference: empty where it is equal, tensor by tensor."""
    expected = load_reference().get(id)
    if expected is None:
        return [f"{id} has no reference"]
    totals = {name: getattr(count, name) for name in TOTALS}
    totals["total"] += sum(count.unreachable.values())  # which the reference's own sums include
    totals["lm_head"] += sum(
        tensor.elements for tensor, _ in list_unreachable(count.sizes, count.head) if tensor.component == "lm_head"
    )
    if expected["class"].endswith("ForCTC"):  # its LM head is not what the reference calls the output embeddings
        del totals["lm_head"]
    found = [
        f"{name}: {value:,} instead of {expected[name]:,}" for name, value in totals.items() if value != expected[name]
    ]
    has, wants = count_shapes(count), Counter(expected["shapes"])
    return found + [
        f"{shape}: {has[shape]} tensors instead of {wants[shape]}"
        for shape in sorted(has | wants)
        if has[shape] != wants[shape]
    ]


# ---- tensor by tensor: the reference's names and shapes of one entry of each architecture

FIRST = re.compile(r"\.(\d+|\{\w+\})(?=\.|$)")  # index of a layer
# Of an expert, not of a step in a sequence; "expert_0" counts too.
LATER = re.compile(r"(\.|(?<=\.expert)_)(\d+|\{\w+\})(?=\.)(?!\.(weight|bias)$)")
Merged = dict[str, dict[str, int]]  # {name without prefix and indices: {shape: how many}}


def load_reference_names() -> dict[str, dict[str, Any]]:
    """{zoo id: {"prefix": of the reference's names, "tensors": its names and shapes}}"""
    return load_zoo_facts("reference_names")


def merge_names(named: Iterable[tuple[str, tuple[int, ...], int]], prefix: str) -> Merged:
    """Tensors, each (name, shape, how many), by name without prefix and indices.

    >>> merge_names([("model.layers.0.w.weight", (8, 4), 1), ("model.layers.{layer}.w.weight", (8, 4), 2)], "model.")
    {'layers.{}.w.weight': {'8×4': 3}}
    """
    found: Merged = {}
    for name, shape, copies in named:
        pattern = LATER.sub(r"\1{}", FIRST.sub(".{}", name.removeprefix(prefix), count=1))
        counts = found.setdefault(pattern, {})
        key = "×".join(map(str, shape))
        counts[key] = counts.get(key, 0) + copies
    return found


def find_misnamed(id: str, count: Count) -> list[str]:
    """Tensors of a zoo entry that differ from its reference's of the same name.

    Empty where all are equal or none are recorded.
    """
    if id not in load_reference_names():
        return []
    recorded = load_reference_names()[id]
    named = [(tensor.name, tensor.shape, tensor.copies) for tensor in list_learned(count)]
    has, wants = merge_names(named, recorded["prefix"]), recorded["tensors"]
    return [
        f"{name}: {has.get(name)} instead of {wants.get(name)}"
        for name in sorted(has | wants)
        if has.get(name) != wants.get(name)
    ]
