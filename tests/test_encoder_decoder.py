"""Encoder-decoder pairs, whose parts config.json names."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from tests.refusing import error_of

SMALL: dict[str, Any] = {"model_type": "bert", "vocab_size": 96, "hidden_size": 32, "intermediate_size": 40}
READS = {"is_decoder": True, "add_cross_attention": True}


def make_pair(encoder: dict[str, Any], decoder: dict[str, Any]) -> dict[str, Any]:
    return {
        "model_type": "encoder-decoder",
        "encoder": SMALL | {"num_attention_heads": 4} | encoder,
        "decoder": SMALL | {"num_attention_heads": 4} | READS | decoder,
    }


@pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
def test_a_pair_has_the_parameters_of_its_parts_and_of_cross_attention() -> None:
    count = pc.count({"model_type": "encoder-decoder"})
    encoder = pc.count({"model_type": "bert", "architectures": ["BertModel"]}).total
    decoder = pc.count({"model_type": "bert"}).total
    crossing = 12 * (4 * (768 * 768 + 768) + 2 * 768)  # four matrices with biases and a norm in each layer
    assert count.parts["cross_attention"] == crossing == 28_366_848
    assert count.total == encoder + decoder + crossing == 247_363_386


def test_parts_of_two_types_and_sizes_are_joined_by_a_matrix() -> None:
    pair = make_pair({"model_type": "roberta", "hidden_size": 64}, {"model_type": "bert-generation"})
    names = {tensor.name: tensor.shape for tensor in pc.count(pair).tensors}
    assert names["enc_to_dec_proj.weight"] == (32, 64)
    assert names["encoder.embeddings.word_embeddings.weight"] == (96, 64)
    assert names["decoder.bert.embeddings.word_embeddings.weight"] == (96, 32)
    assert "encoder.pooler.dense.weight" in names
    same = {tensor.name for tensor in pc.count(make_pair({}, {})).tensors}
    assert "enc_to_dec_proj.weight" not in same


@pytest.mark.parametrize(
    ("encoder", "decoder", "message"),
    [
        ({}, {"model_type": "gpt2"}, "decoder.model_type = 'gpt2' is not supported as decoder"),
        ({"model_type": "t5"}, {}, "encoder.model_type = 't5' is not supported as encoder"),
        ({}, {"model_type": "tapas"}, "decoder.model_type = 'tapas' is not supported as decoder"),
        ({"model_type": "luke"}, {}, "encoder.model_type = 'luke' is not supported as encoder"),
        ({"is_decoder": True}, {}, "encoder.is_decoder = true is not supported"),
        ({}, {"is_decoder": False, "add_cross_attention": False}, "decoder.is_decoder = false is not supported"),
        ({}, {"add_cross_attention": False}, "decoder.add_cross_attention = false is not supported"),
        ({}, {"cross_attention_hidden_size": 48}, "decoder.cross_attention_hidden_size = 48 (expected 32)"),
        ({"hidden_size": 64}, {"cross_attention_hidden_size": 64}, "decoder.cross_attention_hidden_size is set"),
        ({}, {"num_attention_heads": 5}, "decoder.hidden_size = 32 is not a multiple of num_attention_heads = 5"),
    ],
)
def test_other_pairs_are_errors_at_their_key(encoder: dict[str, Any], decoder: dict[str, Any], message: str) -> None:
    assert error_of(pc.count, make_pair(encoder, decoder)).removeprefix("config.json: ").startswith(message)
