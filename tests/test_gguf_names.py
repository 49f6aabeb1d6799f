"""The model's tensors in a GGUF file, as llama.cpp's converter names and shapes them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from math import prod
from types import SimpleNamespace
from typing import Any

import gguf
import pytest
from gguf.tensor_mapping import TensorNameMap

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.api import count
from paramcount.architectures import read_index, split_name
from paramcount.checkpoints.matching import expand_names
from paramcount.checkpoints.writers.gguf_names import (
    find_layout,
    get_gguf_name,
    list_gguf_tensors,
    list_layouts,
)
from paramcount.checkpoints.writers.gguf_tables import ROPE_FACTORS, WITHOUT_PADDING
from paramcount.counting.components import TOWERS
from paramcount.counting.count import Count
from paramcount.flow import TensorRow
from paramcount.loading import load
from paramcount.sizes import Sizes
from paramcount.zoo import count_model
from tests.batches import in_batches
from tests.gguf_writing import LAYOUTS, ROBERTA, Layout, Shapes
from tests.model_types import MODEL_TYPES
from tests.refusing import assert_one_line

TINY = {
    "vocab_size": 96,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
}


def expect_shapes(layout: Layout, *, known: bool = False) -> Shapes:
    """The expected tensors of a file. `known`: whether the shapes in the file are used, not only its names."""
    held = {name: SimpleNamespace(shape=shape) for name, shape in layout.tensors.items()}
    model = count(layout.config)
    found = expand_names(list_gguf_tensors(model.tensors, held if known else list(held), layout.architecture, model))
    mtp = any(tensor.part == "mtp" and name in held for name, tensor in found.items())
    return {
        name: tensor.shape for name, tensor in found.items() if tensor.tied_to is None and (tensor.part != "mtp" or mtp)
    }


def omit_added(layout: Layout) -> Shapes:
    return {name: shape for name, shape in layout.tensors.items() if name not in ROPE_FACTORS}


# ---- names and shapes


@in_batches("name", LAYOUTS, size=80)
def test_every_tensor_has_the_converter_s_name_and_shape(name: str) -> None:
    layout = LAYOUTS[name]
    assert expect_shapes(layout, known=True) == omit_added(layout)


def test_shapes_in_the_file_decide_only_padding_rows_and_leading_axes_of_one() -> None:
    for name, layout in LAYOUTS.items():
        ours, theirs = expect_shapes(layout), omit_added(layout)
        assert ours.keys() == theirs.keys(), name
        for tensor, shape in ours.items():
            other = theirs[tensor]
            if tensor == "token_embd.weight" and layout.architecture in WITHOUT_PADDING:
                assert (shape, other) == ((96, 32), (90, 32))  # the tokenizer has 90 tokens
            elif tensor == "position_embd.weight" and layout.config["model_type"] in ROBERTA:
                assert (shape, other) == ((18, 32), (16, 32))
            elif "quantised" in name:
                assert shape in (other, (1, *other), (1, 1, *other))
            else:
                assert shape == other, (name, tensor)


def test_norms_inside_bitnet_layers_have_names() -> None:
    """LLM_TENSOR_ATTN_SUB_NORM and LLM_TENSOR_FFN_SUB_NORM of llama-arch.cpp."""
    names = {get_gguf_name(tensor.name, "bitnet") for tensor in count({"model_type": "bitnet", **TINY}).tensors}
    assert {"blk.{layer}.attn_sub_norm.weight", "blk.{layer}.ffn_sub_norm.weight"} <= names


# ---- the package's own table of names

# What the converter does to names before it looks them up: conversion/base.py and the classes named.
BEFORE = (
    (r"language_model\.|text_model\.", ""),
    (r"^(bert|roberta)\.", ""),  # BertModel.filter_tensors, RobertaModel, XLMRobertaModel
    (r"^distilbert\.embeddings", "embeddings"),  # DistilBertModel.filter_tensors
    (r"^distilbert\.", ""),
    (
        r"^transformer\.(?=word_embeddings_layernorm|h\.\d+\.(post_attention_layernorm|self_attention|input_layernorm))",
        "",
    ),  # BloomModel, not Falcon
    (r"^transformer\.(?=encoder\.|embedding\.|output_layer)", ""),  # ChatGLMModel
    (r"e_score_correction_bias$", "e_score_correction.bias"),
    (r"dt_bias$", "dt_proj.bias"),  # Mamba2Model, Qwen3NextModel, KimiLinearModel
    (r"^(backbone\.layers\.\d+\.mixer)\.dt_proj", r"\1.dt"),
    (r"\{(expert|stream)\}\.", ""),  # put together
    (r"block_sparse_moe\.((gate|up|down)_proj)", r"mlp.\1"),  # KimiLinearModel
    (
        r"((experts\.(\w+)_proj|sinks|attention_sink_bias|layer_scalar|correct_output_scale|experts\.mlp\.\w\d))$",
        r"\1.weight",
    ),  # get an ending
    (r"^backbone\.(layers\.\d+)\.mixer\.experts", r"model.\1.mlp.experts"),  # NemotronHModel
    (r"^decoder\.embed_tokens", "shared"),  # T5Model
    (r"expert_bias$", "expert_bias.bias"),  # AfmoeModel, Lfm2MoeModel
    (
        r"feed_forward\.experts\.w(\d)",
        lambda found: f"feed_forward.experts.{('gate', 'down', 'up')[int(found[1]) - 1]}_proj",
    ),  # Lfm2MoeModel
)
# Declared modules that the table lacks, or has as something else: in which layouts, and what the converter does with
# them itself.
NOT_IN_THE_TABLE = {
    "wqkv": ("internlm2", "InternLM2Model splits it"),
    "W_pack": ("baichuan", "BaichuanModel splits it"),
    "in_proj_qkvz": ("qwen3next", "Qwen3NextModel splits it; the table has the name of the whole, ssm_in"),
    "input_linear": ("granitehybrid granitemoe", "GraniteMoeModel splits it"),
    "gate_up_proj": (
        "glm4moe gpt-oss llama4 qwen3vlmoe",
        "of experts: Llama4Model, GptOssModel, Qwen2MoeModel and Qwen3VLMoeTextModel split it",
    ),
    "gate_up_proj_bias": ("gpt-oss", "GptOssModel splits it"),
    "down_proj_bias": ("gpt-oss", "GptOssModel names it"),
    "lm_head": ("bert bitnet cohere2 command-r gemma gemma2 lfm2moe", "is tied, or left out by the class"),
    "ffn_sub_norm": ("bitnet", "the table has the ffn_layernorm of an older release"),
    "attn_sub_norm": ("bitnet", "the table has its inner_attn_ln"),
}
LEFT_OUT = ("deepseek2",)  # whose MTP layers are not written: DeepseekV2Model.skip_mtp


def list_configs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every supported architecture with its defaults, or a small config if it has none."""
    small = {layout.config["model_type"]: layout.config for layout in LAYOUTS.values()}
    for name in read_index("gguf"):
        if name in MODEL_TYPES:
            yield (
                name,
                {
                    "model_type": split_name(name)[0],
                    "architectures": [MODEL_TYPES[name].cls],
                    **MODEL_TYPES[name].vary.get("=", {}),
                },
            )
        elif name in small:
            yield name, small[name]


def converter_name(name: str) -> str:
    """A declared name as the converter looks it up."""
    name = name.replace("{layer}", "1")
    for pattern, instead in BEFORE:
        name = re.sub(pattern, instead, name)
    return name


def find_disagreements(model: Count, layout: str) -> Iterator[tuple[str, str | None, str | None]]:
    architecture = {name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}[layout]
    kept = copy.deepcopy(TensorNameMap.block_mappings_cfg)  # which the names of Arctic change for all that come after
    table = gguf.get_tensor_name_map(architecture, 2)
    TensorNameMap.block_mappings_cfg = kept
    cls: type[Sizes] = type(getattr(model.sizes, "language", model.sizes))
    for tensor in model.tensors:
        if tensor.part in TOWERS or tensor.role == "legacy_buffer":
            continue
        ours = get_gguf_name(tensor.name, layout, cls)
        theirs = table.get_name(converter_name(tensor.name), try_suffixes=(".weight", ".bias"))
        if ours != (theirs and theirs.replace(".1.", ".{layer}.", 1)):
            yield tensor.name, ours, theirs


@in_batches(("name", "config"), list(list_configs()), size=80)
def test_names_match_the_package_s_own_table(name: str, config: dict[str, Any]) -> None:
    model = count(config)
    layouts = list_layouts(name, model.sizes)
    usual, *others = [layout for layout in layouts if layout in gguf.MODEL_ARCH_NAMES.values()] or [""]
    for declared, ours, theirs in find_disagreements(model, usual) if usual else ():  # the package may be older
        module = declared.removesuffix(".weight").removesuffix(".bias").rpartition(".")[2]
        known, _ = NOT_IN_THE_TABLE.get(module, ("", ""))
        explained = usual in known.split() or (usual in LEFT_OUT and "nextn" in str(ours))
        assert explained, (declared, ours, theirs)
    for layout in others:  # which hold some of the declared layers
        assert not [found for found in find_disagreements(model, layout) if found[2] is not None]


# ---- what is said where they do not fit


def test_the_error_for_another_architecture_names_both() -> None:
    with pytest.raises(pc.ParamcountError) as caught:
        find_layout("mixtral", "qwen2moe")
    assert str(caught.value) == "general.architecture = 'qwen2moe', but the model is mixtral (expected llama)"
    with pytest.raises(pc.ParamcountError) as caught:
        find_layout("mistral", "a\x1b[31m\n" + "b" * 300)
    assert_one_line(str(caught.value))
    assert str(caught.value).endswith("but the model is mistral (expected llama or mistral3)")


def test_an_architecture_without_a_converter_is_rejected() -> None:
    model = count({"model_type": "xlnet"})
    with pytest.raises(pc.ParamcountError, match=r"^paramcount does not know llama.cpp's tensor names for xlnet"):
        list_gguf_tensors(model.tensors, (), "llama", model)


def test_a_file_without_an_architecture_has_the_usual_one() -> None:
    model = count({"model_type": "nemotron_h"})
    assert find_layout("nemotron_h", None) == "nemotron_h_moe"
    unknown, usual = (list_gguf_tensors(model.tensors, (), name, model) for name in (None, "nemotron_h_moe"))
    assert unknown == usual


def test_a_tensor_without_a_gguf_name_keeps_its_own() -> None:
    model = count({"model_type": "llama", **TINY})
    strange = model.tensors[1]._replace(name="model.layers.{layer}.gyroscope.weight")
    assert list_gguf_tensors([strange], (), "llama", model) == [strange]


def test_missing_latent_attention_has_the_names_of_today_s_converter() -> None:
    for name, expected in {"minicpm3": {"attn_kv_b"}, "deepseek_v3": {"attn_k_b", "attn_v_b"}}.items():
        model = count({"model_type": name})
        written = list_gguf_tensors(model.tensors, (), None, model)
        names = {tensor.name.split(".")[2] for tensor in written if tensor.part != "mtp" and "blk" in tensor.name}
        assert names & {"attn_kv_b", "attn_k_b", "attn_v_b"} == expected


def test_fused_matrices_have_queries_keys_and_values_in_this_order() -> None:
    layout = LAYOUTS["llama-llama-fuse_qkv"]
    model = count(layout.config)
    written = list_gguf_tensors(model.tensors[::-1], list(layout.tensors), "llama", model)
    fused = next(tensor for tensor in written if tensor.name == "blk.{layer}.attn_qkv.weight")
    assert fused.splits == (("qkv.q", 32), ("qkv.k", 16), ("qkv.v", 16))


@pytest.mark.parametrize(
    ("tensor", "declared", "held", "architecture", "fits"),
    [
        ("token_embd.weight", (262208, 2560), (262144, 2560), "gemma3", True),  # Gemma 3 4B as it is published
        ("token_embd.weight", (262208, 2560), (261888, 2560), "gemma3", False),
        ("token_embd.weight", (262208, 2560), (262209, 2560), "gemma3", False),
        ("token_embd.weight", (262208, 2560), (262144, 2559), "gemma3", False),
        ("token_embd.weight", (128256, 4096), (128192, 4096), "llama", False),
        ("output_norm.weight", (4096,), (1, 4096), "llama", True),
        ("output_norm.weight", (4096,), (4096, 1), "llama", False),
    ],
)
def test_a_shape_is_taken_from_the_file_only_if_it_is_equivalent(
    tensor: str, declared: tuple[int, ...], held: tuple[int, ...], architecture: str, fits: bool
) -> None:
    model = count({"model_type": {"gemma3": "gemma3_text"}.get(architecture, architecture)})
    one = next(t for t in list_gguf_tensors(model.tensors, (), architecture, model) if t.name == tensor)
    source = next(t for t in model.tensors if get_gguf_name(t.name, architecture) == tensor)._replace(matrix=declared)
    (found,) = list_gguf_tensors([source], {tensor: SimpleNamespace(shape=held)}, architecture, model)
    assert one.name == found.name and found.shape == (held if fits else declared)


# ---- nothing is lost


def sum_values(tensors: Iterable[TensorRow]) -> int:
    return sum(tensor.parameters for tensor in tensors if tensor.part != "mtp")


def test_every_parameter_of_every_zoo_model_is_in_its_gguf_file() -> None:
    models = [one for id in zoo.list_ids() if (one := load(id)).architecture in read_index("gguf")]
    counts = [count_model(model) for model in models]
    assert len(counts) > 140
    for model in counts:
        written = list_gguf_tensors(model.tensors, (), None, model)
        assert sum_values(written) == model.language_model - count_unwritten(model), model.id
        rows = (*model.tensors, *written)
        assert [row.name for row in rows if sum(n for _, n in row.shares) != prod(row.matrix)] == [], model.id


@pytest.mark.parametrize(
    ("language", "named"),
    [("biogpt", "names for biogpt; did you mean gpt2[?]"), ("gemma2", "names for llava with gemma2")],
)
def test_a_language_model_without_names_in_llama_cpp_is_an_error(language: str, named: str) -> None:
    model = count({"model_type": "llava", "text_config": {"model_type": language, "vocab_size": 320}})
    with pytest.raises(pc.ParamcountError, match=f"{named}$"):
        list_gguf_tensors(model.tensors, (), None, model)


def test_a_multimodal_model_has_the_names_of_its_language_model() -> None:
    counts = {id: count(id) for id in VARIED}
    assert {id: find_layout(one.architecture, None, one.sizes) for id, one in counts.items()} == VARIED


VARIED = {  # {model: general.architecture}: Mistral3Model and LlamaModel of conversion/, of the class in text_config
    "internvl3-1b": "qwen2",
    "llava-1.5-7b": "llama",
    "ministral-3-3b": "mistral3",
    "mistral-small-4": "mistral4",
}


def count_unwritten(model: Count) -> int:
    """What the converter leaves out (gguf_tables.DROPPED and HEADLESS).

    Of BERT, DistilBERT and RoBERTa: in front of the LM head a matrix with its bias and a LayerNorm, arXiv:1810.04805
    §3.1, and the head's own bias; without LM head the pooler, a matrix with its bias. Of Apertus: the two learned
    values of each layer's activation, xIELU, which ApertusModel writes as metadata (xielu.alpha_p and xielu.alpha_n in
    gguf.Keys).
    """
    if model.architecture == "apertus":
        return 2 * int(model.sizes.n_layers)
    if model.architecture not in ("bert", "distilbert", *ROBERTA):
        return 0
    d, vocabulary = int(model.sizes.d_model), int(model.sizes.vocab_size)
    return d * d + 3 * d + vocabulary if model.head else d * d + d


# See gguf_tables.DROPPED and HEADLESS.
UNWRITTEN = {"apertus", "bert", "camembert", "distilbert", "gemma", "gemma2", "roberta", "xlm-roberta"}


@in_batches("name", sorted({layout.config["model_type"] for layout in LAYOUTS.values()} - UNWRITTEN), size=60)
def test_every_parameter_of_a_small_model_is_in_its_gguf_file(name: str) -> None:
    for layout in LAYOUTS.values():
        if layout.config["model_type"] == name:
            model = count(layout.config)
            written = list_gguf_tensors(model.tensors, list(layout.tensors), layout.architecture, model)
            assert sum_values(written) == model.language_model
