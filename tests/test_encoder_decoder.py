"""Encoder-decoder pairs, of texts or of an image and a text, whose parts config.json names."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from paramcount.formats.strict_yaml import parse_yaml
from paramcount.zoo import load_entry
from paramcount.zoo.entries import parse_entry
from paramcount.zoo.writing import format_entry

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


def test_gpt_2_attends_in_each_layer_to_the_encoder_of_a_pair() -> None:
    pair = {"model_type": "vision-encoder-decoder", "encoder": {}, "decoder": {"model_type": "gpt2", **READS}}
    count = pc.count(pair)
    crossing = 12 * (4 * (768 * 768 + 768) + 2 * 768)  # four matrices with biases and a norm in each layer
    assert count.parts["decoder"] == 124_439_808
    assert count.parts["cross_attention"] == crossing == 28_366_848
    assert count.total == 85_798_656 + 768 * 768 + 768 + 124_439_808 + crossing
    assert count.legacy_buffers == 2 * 12 * 1024 * 1024  # a causal mask of each attention
    shapes = {tensor.name: tensor.shape for tensor in count.tensors}
    assert shapes["decoder.transformer.h.{layer}.crossattention.c_attn.weight"] == (768, 2 * 768)
    assert shapes["decoder.transformer.h.{layer}.crossattention.q_attn.weight"] == (768, 768)
    assert shapes["decoder.transformer.h.{layer}.crossattention.bias"] == (1, 1, 1024, 1024)


def test_gpt_2_alone_attends_to_an_encoder_if_its_config_says_so() -> None:
    with pytest.warns(pc.ConfigWarning):
        count = pc.count({"model_type": "gpt2", "add_cross_attention": True})
    assert count.total == 124_439_808 + 12 * (4 * (768 * 768 + 768) + 2 * 768)
    assert "h.{layer}.ln_cross_attn.weight" in {tensor.name for tensor in count.tensors}


@pytest.mark.parametrize("flag", [True, False])
def test_an_entry_states_cross_attention_of_gpt_2_only_if_there_is_any(flag: bool) -> None:
    entry = load_entry("gpt2-small").entry
    assert entry is not None and entry.config is not None
    sizes = entry.config.replace(cross_attention=flag)
    text = format_entry(entry.model_copy(update={"config": sizes}))
    assert ("cross_attention" in text) is flag
    assert parse_entry(parse_yaml(text)).config == sizes


# ---- an image and a text

SEES: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}


def make_sight(encoder: dict[str, Any], decoder: dict[str, Any]) -> dict[str, Any]:
    return {
        "model_type": "vision-encoder-decoder",
        "encoder": SEES | encoder,
        "decoder": SMALL | {"num_attention_heads": 4} | READS | decoder,
    }


@pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
def test_an_image_is_read_by_a_vision_transformer() -> None:
    count = pc.count({"model_type": "vision-encoder-decoder"})
    patches, positions = 3 * 16 * 16 * 768 + 768, (14 * 14 + 1) * 768
    layer = 4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768
    encoder = patches + 768 + positions + 12 * layer + 2 * 768
    assert encoder == 85_798_656  # ViT-B/16 without its classifier: timm, results of vit_base_patch16_224
    assert count.parts["vision"] == count.components["vision"] == encoder + 768 * 768 + 768
    decoder = pc.count({"model_type": "encoder-decoder"}).parts
    assert count.parts["decoder"] == decoder["decoder"]
    assert count.parts["cross_attention"] == decoder["cross_attention"]


def test_a_distilled_encoder_has_a_second_token_and_its_position() -> None:
    vit, deit = (pc.count(make_sight({"model_type": name}, {})) for name in ("vit", "deit"))
    assert deit.total - vit.total == 2 * 32
    shapes = {tensor.name: tensor.shape for tensor in deit.tensors}
    assert shapes["encoder.embeddings.distillation_token"] == (1, 1, 32)
    assert shapes["encoder.embeddings.position_embeddings"] == (1, 14 * 14 + 2, 32)


def test_windows_of_patches_have_a_bias_per_distance() -> None:
    sizes = {"embed_dim": 16, "depths": [1, 2], "num_heads": [2, 4], "window_size": 3, "mlp_ratio": 2.0}
    for name, last in (("swin", 2 * 32), ("donut-swin", 0)):
        encoder = {"model_type": name, "image_size": 32, "patch_size": 4, **sizes}
        pair = {**make_sight({}, {}), "encoder": encoder}
        count = pc.count(pair)
        layers = [4 * (d * d + d) + 2 * (2 * d * d) + 3 * d + 4 * d + 25 * heads for d, heads in ((16, 2), (32, 4))]
        patches, merged = 3 * 4 * 4 * 16 + 16 + 2 * 16, 64 * 32 + 2 * 64
        assert count.parts["vision"] == patches + layers[0] + merged + 2 * layers[1] + last
        assert count.buffers == (3 * 9 * 9 if name == "donut-swin" else 0)  # an index per pair of a window


def test_biases_of_beit_are_of_each_layer_or_shared() -> None:
    plain, own, shared = (
        pc.count(make_sight({"model_type": "beit", "image_size": 32, "patch_size": 8, **flags}, {})).total
        for flags in ({}, {"use_relative_position_bias": True}, {"use_shared_relative_position_bias": True})
    )
    table = (7 * 7 + 3) * 4  # distances of -3 to 3 rows and columns, and pairs with the class token; four heads
    assert (own - plain, shared - plain) == (2 * table, table)


@pytest.mark.parametrize(("name", "head"), [("trocr", "output_projection"), ("bart", "lm_head"), ("mbart", "lm_head")])
def test_decoders_that_always_attend_need_no_flags(name: str, head: str) -> None:
    decoder = {
        "model_type": name,
        "d_model": 16,
        "decoder_layers": 1,
        "decoder_attention_heads": 2,
        "is_decoder": False,
    }
    pair = make_sight({}, {**decoder, "tie_word_embeddings": False})
    for key in ("hidden_size", "num_attention_heads"):
        del pair["decoder"][key]
    shapes = {tensor.name: tensor.shape for tensor in pc.count(pair).tensors}
    assert shapes[f"decoder.{head}.weight"] == (96, 16)
    assert shapes["enc_to_dec_proj.weight"] == (16, 32)
    assert shapes["decoder.model.decoder.layers.{layer}.encoder_attn.k_proj.weight"] == (16, 16)


def test_the_keys_of_trocr_read_vectors_of_the_encoders_size() -> None:
    pair = make_sight({"hidden_size": 48}, {"model_type": "trocr", "cross_attention_hidden_size": 48})
    shapes = {tensor.name: tensor.shape for tensor in pc.count(pair).tensors}
    assert shapes["decoder.model.decoder.layers.{layer}.encoder_attn.k_proj.weight"] == (32, 48)
    assert "enc_to_dec_proj.weight" not in shapes


def test_a_vision_encoder_without_a_section_is_none_of_a_multimodal_model() -> None:
    config = {"model_type": "llava", "vision_config": {"model_type": "vit"}, "text_config": {"model_type": "llama"}}
    assert pc.count(config).not_counted == ("vision_config", "projector")
