"""Corrupted shard indices: rejected in one line, or read as Python's own JSON reader reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paramcount.checkpoints.opening.indices import parse_index
from tests.fuzz.frame import fuzz, spoil_text
from tests.refusing import read_or_none

pytestmark = pytest.mark.fuzz

SCRAPS = (
    "", " ", "{", "}", "[", "]", ",", ":", '"', "\\", "\0", "\x1b", "\ufeff", "0", "-1", "1.0", "1e3", "01", "true",
    "null", "NaN", '"a"', '"b"', '"metadata"', '"weight_map"', '"total_size"',
    '"x.safetensors"', '"../x.safetensors"', "{}", '{"a":"b"}', '"c":"x.safetensors",', "\\u0061", "\\ud800", "\n",
)  # fmt: skip
VALID = [
    json.dumps({"metadata": {"total_size": 12}, "weight_map": {"a": "x.safetensors", "b": "y.safetensors"}}, indent=2),
    '{"weight_map":{"\\u0061":"x.safetensors","b":"x.s\\u0061fetensors"},"metadata":{"total_size":4.0,"x":{"y":[1]}}}',
    '{ "metadata" : null , "weight_map" : { "a" : "d/x.bin" , "b\u00e9" : "y.pt" } } ',
]


def read_with_json(text: str) -> dict[str, str] | None:
    """The weight map that Python's own JSON reader finds; None if there is none or a key is duplicated."""

    def reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        found = json.loads(text, object_pairs_hook=reject_duplicates)
    except ValueError:
        return None
    placed = found.get("weight_map") if isinstance(found, dict) else None
    if not isinstance(placed, dict) or not placed:
        return None
    return placed if all(isinstance(text, str) and text.isprintable() for text in (*placed, *placed.values())) else None


def check_index(text: str) -> str:
    """Whether an index was read or rejected. If read, Python's own reader agrees."""
    found = read_or_none(parse_index, text)
    if found is None:
        return "refused"
    expected = read_with_json(text)
    assert expected is not None
    assert found.weight_map == expected
    assert found.files == tuple(sorted(set(expected.values())))
    return "read"


def test_a_corrupted_index_is_rejected_or_read_as_python_reads_it() -> None:
    assert fuzz(lambda rng: spoil_text(rng, VALID, SCRAPS), check_index, valid=VALID) == {"refused", "read"}
