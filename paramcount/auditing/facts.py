"""What the zoo says of a model, by the columns of a table of claims."""

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
    "n_layers", "d_model", "n_heads", "n_kv_heads", "d_head", "d_ff", "n_routed_experts", "n_active_experts", "n_shared_experts", "d_expert", "vocab_size",
)  # fmt: skip
DOUBLED = ("qwen",)  # architectures whose config.json gives the widths of gate and up together
FIGURE = re.compile(r"(?<![\w.,@])(\d{1,3}(?:,\d{3})+|\d{1,9})([kK]?)(?!\w|[.,]\d)")


class Truth(NamedTuple):
    """What is true of a model in one column."""

    value: int | None  # None where nobody can say
    why: str = ""  # nobody can
    others: tuple[tuple[int, str], ...] = ()  # what the column may mean besides, in words


@lru_cache(maxsize=1024)
def list_truths(id: str) -> Mapping[str, Truth]:
    """{column: what is true of a zoo entry}; `bytes` are left to whoever knows how many a value takes."""
    model, count = load_entry(id), count_of(id)
    sizes = model.sizes
    (row,) = make_rows([model])
    found = {name: Truth(getattr(count, name)) for name in ("total", "active", "non_embedding")}
    for name in SIZES:
        value = row[name]
        if value is None:
            found[name] = Truth(None, "differs between layers")
        elif name == "d_ff" and not value and row["d_expert"]:
            found[name] = Truth(row["d_expert"])
        else:
            found[name] = Truth(
                value if value or name.endswith("experts") else None, "the model has no such size", tuple(others(name, value, row, sizes, model))
            )
    if not row["n_shared_experts"] and row["d_shared_expert"]:
        found["n_shared_experts"] = Truth(None, f"the shared experts are one block of size {row['d_shared_expert']:,}")
    found["context_length"] = Truth(model.context_length, "the zoo entry has none")
    found["tied"] = Truth(int(count.tied))
    return found


def others(name: str, value: int, row: Mapping[str, int | None], sizes: object, model: Model) -> Iterator[tuple[int, str]]:
    """What a size may mean besides."""

    def size(other: str) -> int:
        found = getattr(sizes, other, 0)
        return found if type(found) is int else 0

    if name == "n_layers" and (decoder := size("n_decoder_layers")):
        yield value + decoder, f"{value} encoder and {decoder} decoder layers"
    elif name == "d_head":
        parts = {"d_nope": "non-rotary part", "d_rope": "rotary part", "d_v": "of values"}
        yield from ((size(part), words) for part, words in parts.items() if size(part))
    elif name == "d_ff":
        if row["d_expert"]:
            yield int(row["d_expert"]), "of one expert"
        if value and model.architecture in DOUBLED:
            yield 2 * value, "gate and up together, as in its config.json"
    elif name in ("n_routed_experts", "n_active_experts") and value and (shared := row["n_shared_experts"]):
        yield value + shared, f"{value} routed and {shared} shared"


@lru_cache(maxsize=1024)
def count_of(id: str) -> Count:
    return count_model(load_entry(id))


def bytes_of(id: str, width: int) -> Truth:
    """Bytes at so many a value: of the parameters, or of all that the released files hold."""
    count = count_of(id)
    beside = [(width * count.checkpoint, f"of the {count.checkpoint:,} values in the released files")] if count.checkpoint not in (None, count.total) else []
    return Truth(width * count.total, "", tuple(beside))


def contexts_in_notes(model: Model) -> Iterator[tuple[int, str]]:
    """Context lengths that an entry's notes speak of besides its own, each with the note."""
    for note in model.notes:
        if not re.search(r"context|position", note, re.IGNORECASE):
            continue
        for digits, k in FIGURE.findall(note):
            number = int(digits.replace(",", ""))
            meant = {number * UNITS["k"], number * 1024} if k else {number}
            if model.context_length not in meant:
                yield from ((length, note) for length in meant)
