"""Every model type of the mappings of language, speech and audio of transformers 5.23.0, and what paramcount makes of
its class, as tests/data/types states it.

`python -m tests.mapping_states` works out the states again from what is supported; tests/oracle/test_mappings.py holds
the rows against transformers.

exact: the total is the class's own, tensor by tensor; unreachable: the same, but for parameters that no forward pass
reads, which are reported apart; language model only: the other parts are not declared; without its head: the class's
own head is not declared; refused: the reference itself cannot build the class from its default config; unsupported: an
error, for the reason given.
"""

from __future__ import annotations

import warnings
from itertools import groupby
from typing import NamedTuple

import paramcount as pc
from paramcount.architectures import ARCHITECTURES, split_name
from tests.model_types import MODEL_TYPES
from tests.type_files import load_all, save_fact

EXACT, UNREACHABLE, LANGUAGE_MODEL, BODY, REFUSED, UNSUPPORTED = STATES = (
    "exact", "unreachable", "language model only", "without its head", "refused", "unsupported",
)  # fmt: skip


class Row(NamedTuple):
    mapping: str
    model_type: str
    cls: str
    state: str
    reason: str


def load_mappings() -> list[Row]:
    tables = load_all("mappings").items()
    return sorted(Row(mapping, name, *facts) for name, rows in tables for mapping, *facts in rows)


def save_mappings(rows: list[Row]) -> None:
    for name, found in groupby(sorted(rows, key=lambda row: row.model_type), key=lambda row: row.model_type):
        save_fact(name, "mappings", [[row.mapping, row.cls, row.state, row.reason] for row in sorted(found)])


def find_state(row: Row) -> str:
    """What paramcount makes of the default config of a row's model type and class."""
    facts = MODEL_TYPES.get(f"{row.model_type}.{row.cls}", MODEL_TYPES.get(row.model_type))
    needed = facts.vary.get("=", {}) if facts else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pc.ConfigWarning)  # the defaults are meant
            count = pc.count({"model_type": row.model_type, "architectures": [row.cls], **needed})
    except pc.ParamcountError:
        return row.state if row.state == REFUSED else UNSUPPORTED
    if count.scope == "language_model":
        return LANGUAGE_MODEL
    if count.not_counted or count.reference != row.cls:
        return BODY
    reference = facts.total if facts and facts.cls == row.cls else count.total
    return EXACT if count.total == reference else UNREACHABLE


def summarise_mappings(rows: list[Row]) -> str:
    """The sums, as the guide on accuracy states them."""
    mapped = {row.model_type for row in rows}
    known = {split_name(name)[0] for name in ARCHITECTURES}
    whole = {row.model_type for row in rows if row.state in (EXACT, UNREACHABLE)} & known
    return (
        f"Of the {len(mapped)} model types that transformers maps to a causal, sequence-to-sequence, masked, "
        f"image-text-to-text, multimodal, pre-training, speech or audio class, paramcount counts {len(whole)} in full; "
        f"the other {len(mapped - whole)} are not supported yet. tests/data/types has a row for each class. "
        f"paramcount also counts {len(known - mapped)} model types that these mappings lack: models with their own "
        "modeling code, and the language models of multimodal models."
    )


def refresh_mappings() -> None:
    save_mappings(
        [
            row._replace(state=now, reason="" if now in (EXACT, UNREACHABLE) else row.reason)
            for row in load_mappings()
            if (now := find_state(row))
        ]
    )


if __name__ == "__main__":
    refresh_mappings()
