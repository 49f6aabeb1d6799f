"""π0, whose config.json has a multimodal model in a section."""

from copy import deepcopy
from typing import Any

import pytest

import paramcount as pc
from paramcount.huggingface.config import read_config
from tests.oracle.differential import set_path
from tests.small_models import make_arrays
from tests.type_files import load_facts

CONFIG: dict[str, Any] = {"model_type": "pi0", **load_facts("pi0")["configs"][""]}


def change(path: str, value: object) -> dict[str, Any]:
    """The small config with another value."""
    document: dict[str, Any] = deepcopy(CONFIG)
    set_path(document, path, value)
    return document


def test_keys_of_sections_inside_a_section_are_read() -> None:
    model = read_config(CONFIG)
    assert model.reading.warnings == ()


def test_a_misspelt_key_in_an_inner_section_is_a_warning() -> None:
    (warning,) = read_config(change("vlm_config.text_config.d_mdoel", 3)).reading.warnings
    assert warning.startswith("ignored vlm_config.text_config.d_mdoel")


def test_the_action_expert_has_the_vocabulary_of_the_language_model() -> None:
    count = pc.count(change("dit_config.vocab_size", 1000))
    assert count.unreachable == {"paligemma_with_expert.gemma_expert.lm_head.weight": 96 * 24}


def test_actions_are_denoised_and_no_token_is_decoded() -> None:
    """PI0ForConditionalGeneration.sample_actions: the cache of the prompt is read by actions alone."""
    config = CONFIG
    with pytest.raises(pc.ParamcountError, match=r"^past = 3, but unnamed is not autoregressive: it outputs actions$"):
        pc.trace(config, past=3)
    flops = pc.flops(config, context=7)
    assert (flops.flops_per_token, flops.by_component) == (None, {})


def test_without_an_image_and_actions_nothing_runs() -> None:
    # modeling_pi0.py: without pixel_values, nothing embeds the prompt; the actions are read with its cache alone
    config = CONFIG
    with pytest.raises(pc.ParamcountError, match=r"^the input pixels is missing \(expected pixels=…\)$"):
        pc.run(config, make_arrays(config), [3, 1, 4])
