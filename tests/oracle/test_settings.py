"""paramcount/sizes/settings.json says what the reference's config classes take, as trying them finds out."""

from __future__ import annotations

from typing import Any

import pytest

from paramcount.sizes.fields import DEFAULTS
from paramcount.sizes.settings import ACTIVATIONS, ROPE_KEYS, get_settings
from tests.oracle.settings import (
    config_class,
    format_lines,
    list_classes,
    list_dropout_keys,
    list_letters,
    list_sections,
    make_defaults,
    make_small,
    needs_probability,
)


def test_the_activations_are_those_of_the_reference_without_weights() -> None:
    from transformers.activations import ACT2CLS, ACT2FN

    assert set(ACTIVATIONS) == {name for name in ACT2CLS if not list(ACT2FN[name].parameters())}


def test_the_kinds_of_rotary_positions_are_those_of_the_reference() -> None:
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    assert set(ROPE_KEYS) == {"default", *ROPE_INIT_FUNCTIONS}


def test_the_defaults_of_missing_keys_are_those_of_the_config_classes() -> None:
    assert DEFAULTS.read_text(encoding="utf-8") == format_lines(make_defaults())


@pytest.mark.parametrize(("name", "cls"), sorted(list_classes()[1].items()))
def test_a_config_class_takes_the_types_that_the_table_says(name: str, cls: Any) -> None:
    settings = get_settings(name)
    assert {key: list_letters(cls, key) for key in settings.letters} == {
        key: types.rstrip("ax") for key, types in settings.letters.items()
    }
    assert settings.sections == list_sections(cls)


@pytest.mark.parametrize("model_type", ["bart", "bert", "falcon", "gpt2", "llama", "llava", "mpt", "qwen2", "t5"])
def test_a_model_needs_the_probabilities_of_dropout_that_the_table_says(model_type: str) -> None:
    small = make_small(model_type)
    for holder, prefix, key in list_dropout_keys(config_class(model_type), small[0]):
        assert needs_probability(small, prefix + key) == (key in get_settings(holder.__name__).probabilities), key
