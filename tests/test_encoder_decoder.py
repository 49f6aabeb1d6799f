"""Encoder-decoder pairs whose parts config.json names, and decoders that attend to an encoder."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from paramcount.formats.strict_yaml import parse_yaml
from paramcount.zoo import load_entry
from paramcount.zoo.entries import parse_entry
from paramcount.zoo.writing import format_entry


@pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
def test_a_pair_has_the_parameters_of_its_parts_and_of_cross_attention() -> None:
    count = pc.count({"model_type": "encoder-decoder"})
    encoder = pc.count({"model_type": "bert", "architectures": ["BertModel"]}).total
    decoder = pc.count({"model_type": "bert"}).total
    crossing = 12 * (4 * (768 * 768 + 768) + 2 * 768)  # four matrices with biases and a norm in each layer
    assert count.parts["cross_attention"] == crossing == 28_366_848
    assert count.total == encoder + decoder + crossing == 247_363_386


@pytest.mark.parametrize(("encoder", "is_joined"), [({"hidden_size": 64, "model_type": "roberta"}, True), ({}, False)])
def test_parts_of_two_sizes_are_joined_by_a_matrix(encoder: dict[str, Any], is_joined: bool) -> None:
    small = {
        "model_type": "bert",
        "vocab_size": 96,
        "hidden_size": 32,
        "intermediate_size": 40,
        "num_attention_heads": 4,
    }
    decoder = small | {"model_type": "bert-generation", "is_decoder": True, "add_cross_attention": True}
    count = pc.count({"model_type": "encoder-decoder", "encoder": small | encoder, "decoder": decoder})
    joining = [tensor.shape for tensor in count.tensors if tensor.name == "enc_to_dec_proj.weight"]
    assert joining == ([(32, 64)] if is_joined else [])


def test_gpt_2_alone_attends_to_an_encoder_if_its_config_says_so() -> None:
    with pytest.warns(pc.ConfigWarning):
        count = pc.count({"model_type": "gpt2", "add_cross_attention": True})
    assert count.total == 124_439_808 + 12 * (4 * (768 * 768 + 768) + 2 * 768)
    assert "h.{layer}.ln_cross_attn.weight" in {tensor.name for tensor in count.tensors}
    assert count.legacy_buffers == 2 * 12 * 1024 * 1024  # a causal mask of each attention


@pytest.mark.parametrize("flag", [True, False])
def test_an_entry_states_cross_attention_of_gpt_2_only_if_there_is_any(flag: bool) -> None:
    entry = load_entry("gpt2-small").entry
    assert entry is not None and entry.config is not None
    sizes = entry.config.replace(cross_attention=flag)
    text = format_entry(entry.model_copy(update={"config": sizes}))
    assert ("cross_attention" in text) is flag
    assert parse_entry(parse_yaml(text)).config == sizes


def test_a_vision_encoder_without_a_section_is_none_of_a_multimodal_model() -> None:
    config = {"model_type": "llava", "vision_config": {"model_type": "vit"}, "text_config": {"model_type": "llama"}}
    assert pc.count(config).not_counted == ("vision_config", "projector")
