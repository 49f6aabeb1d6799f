"""config.json files of every model type, spoilt: counted exactly, or refused in one line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import paramcount as pc
from paramcount.architectures import split_name
from paramcount.huggingface.locate import parse_document
from paramcount.loading import load_document
from tests.fuzz.frame import call_or_refuse, check_count, fuzz, often, spoil_text
from tests.fuzz.values import SCRAPS, SIZES
from tests.model_types import MODEL_TYPES
from tests.oracle.differential import make_document
from tests.refusing import read_or_none

pytestmark = pytest.mark.fuzz

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | SIZES.filter(lambda n: n < 10**100)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["full_attention", "linear_attention", "moe", "auto", "relu"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def list_paths(document: dict[str, Any], start: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every key, as the steps that lead to it."""
    found = []
    for key, value in document.items():
        found.append((*start, key))
        if isinstance(value, dict):
            found += list_paths(value, (*start, key))
    return found


@often
@given(st.data())
def test_any_config_json_is_counted_or_rejected(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(MODEL_TYPES)))
    document = make_document(name, lambda options: data.draw(st.sampled_from(options)), MODEL_TYPES[name].vary)
    for _ in range(data.draw(st.integers(0, 3))):
        *outer, last = data.draw(st.sampled_from(list_paths(document)))
        place: Any = document
        for step in outer:
            place = place[step] if isinstance(place, dict) and step in place else {}
        if isinstance(place, dict):
            place[last] = data.draw(JSON)
    check_count(call_or_refuse(lambda: pc.count(document)))
    check_count(call_or_refuse(lambda: load_document(parse_document(json.dumps(document), "config.json"))))


CONFIGS: list[dict[str, Any]] = [
    {"model_type": "qwen3", "num_hidden_layers": 2, "hidden_size": 64, "tie_word_embeddings": True,
     "rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
    {"model_type": "mixtral", "num_local_experts": 4, "vocab_size": 10, "layer_types": None, "id2label": {"0": "a"}},
    {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "vision_config": {},
     "text_config": {"hidden_size": 64, "head_dim": 8}},
]  # fmt: skip
VALID = [json.dumps(config, indent=indent) for config, indent in zip(CONFIGS, (None, 2, None))]


def test_a_corrupted_text_is_counted_or_rejected() -> None:
    def verdict_of(text: str) -> str:
        model = read_or_none(lambda text: load_document(parse_document(text, "config.json")), text)
        check_count(model and call_or_refuse(lambda: pc.count(model)))
        return "read" if model else "refused"

    assert fuzz(lambda rng: spoil_text(rng, VALID, SCRAPS), verdict_of) == {"refused", "read"}


@often
@given(
    st.sampled_from(sorted(MODEL_TYPES)),
    st.dictionaries(
        st.none() | st.integers() | st.floats() | st.text(max_size=8), st.integers() | st.none(), max_size=3
    ),
)
def test_keys_of_any_kind_are_counted_or_rejected(name: str, others: dict[Any, Any]) -> None:
    check_count(call_or_refuse(lambda: pc.count({"model_type": split_name(name)[0], **others})))
    check_count(
        call_or_refuse(lambda: pc.count({"model_type": "gemma3", "text_config": others, "vision_config": others}))
    )
