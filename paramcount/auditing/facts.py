"""The correct values of zoo models for each column of a table of claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from paramcount.auditing.headings import UNITS
from paramcount.counting.count import Count
from paramcount.views.compare import make_rows
from paramcount.zoo import Model, count_model, load_entry

SIZES = (
    "n_layers", "d_model", "n_heads", "n_kv_heads", "d_head", "d_ff",
    "n_routed_experts", "n_active_experts", "n_shared_experts", "d_expert", "vocab_size",
)  # fmt: skip
FUSED_MLP_SIZES = ("qwen",)  # architectures whose config.json has the combined size of gate and up
FIGURE = re.compile(r"(?<![\w.,@])(\d{1,3}(?:,\d{3})+|\d{1,9})([kK]?)(?!\w|[.,]\d)")


class Truth(NamedTuple):
    """The correct value of a model in one column."""

    value: int | None  # None if unknown
    why: str = ""  # reason if unknown
    others: tuple[tuple[int, str], ...] = ()  # values for other meanings of the column, with descriptions


@lru_cache(maxsize=1024)
def list_truths(id: str) -> Mapping[str, Truth]:
    """{column: correct value of a zoo entry}, without `bytes`, which depend on the data type."""
    model, count = load_entry(id), count_entry(id)
    (row,) = make_rows([model])
    truths = {name: Truth(getattr(count, name)) for name in ("total", "active", "non_embedding")}
    for name in SIZES:
        value = row[name]
        if value is None:
            truths[name] = Truth(None, "differs between layers")
        elif name == "d_ff" and not value and row["d_expert"]:
            truths[name] = Truth(row["d_expert"])
        else:
            alternatives = tuple(list_alternatives(name, value, row, model))
            is_present = value or name.endswith("experts")  # no experts is a fact, not a missing size
            truths[name] = Truth(value if is_present else None, "the model has no such size", alternatives)
    if not row["n_shared_experts"] and row["d_shared_expert"]:
        truths["n_shared_experts"] = Truth(None, f"the shared experts are one block of size {row['d_shared_expert']:,}")
    truths["context_length"] = Truth(model.context_length, "the zoo entry does not state it")
    truths["tied"] = Truth(int(count.tied))
    return truths


def list_alternatives(name: str, value: int, row: Mapping[str, int | None], model: Model) -> Iterator[tuple[int, str]]:

    def get_size(other: str) -> int:
        size = getattr(model.sizes, other, 0)
        return size if type(size) is int else 0

    if name == "n_layers" and (decoder := get_size("n_decoder_layers")):
        encoder = get_size("n_encoder_layers") or get_size("n_layers")
        yield encoder + decoder, f"{encoder} encoder and {decoder} decoder layers"
    elif name == "d_head":
        parts = {"d_nope": "non-rotary part", "d_rope": "rotary part", "d_v": "value heads"}
        yield from ((get_size(part), words) for part, words in parts.items() if get_size(part))
    elif name == "d_ff":
        if row["d_expert"]:
            yield int(row["d_expert"]), "size of one expert"
        if value and model.architecture in FUSED_MLP_SIZES:
            yield 2 * value, "gate and up combined, as in its config.json"
    elif name in ("n_routed_experts", "n_active_experts") and value and (shared := row["n_shared_experts"]):
        yield value + shared, f"{value} routed and {shared} shared"


@lru_cache(maxsize=1024)
def count_entry(id: str) -> Count:
    return count_model(load_entry(id))


def count_bytes(id: str, width: int) -> Truth:
    """The bytes of all parameters; alternatively, of all values in the released files. `width`: bytes per value."""
    count = count_entry(id)
    if count.checkpoint in (None, count.total):
        return Truth(width * count.total)
    released = width * count.checkpoint, f"all {count.checkpoint:,} values in the released files"
    return Truth(width * count.total, "", (released,))


def list_noted_contexts(model: Model) -> Iterator[tuple[int, str]]:
    """Other context lengths in the notes of a zoo entry, each with its note."""
    for note in model.notes:
        if not re.search(r"context|position", note, re.IGNORECASE):
            continue
        for digits, k in FIGURE.findall(note):
            number = int(digits.replace(",", ""))
            possible = {number * UNITS["k"], number * 1024} if k else {number}
            if model.context_length not in possible:
                yield from ((length, note) for length in possible)
