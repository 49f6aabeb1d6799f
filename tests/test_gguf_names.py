"""The model's tensors in a GGUF file, as llama.cpp's converter names and shapes them."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from types import SimpleNamespace

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.api import count
from paramcount.architectures import read_index
from paramcount.checkpoints.matching import expand_names
from paramcount.checkpoints.writers.gguf_names import (
    find_layout,
    get_gguf_name,
    list_gguf_tensors,
)
from paramcount.checkpoints.writers.gguf_tables import ROPE_FACTORS
from paramcount.counting.count import Count
from paramcount.flow import TensorRow
from paramcount.loading import load
from paramcount.zoo import count_model
from tests.batches import in_batches
from tests.gguf_writing import LAYOUTS, ROBERTA, VARIED, Layout, Shapes
from tests.refusing import assert_one_line

# ---- names and shapes


def expect_shapes(layout: Layout) -> Shapes:
    """The expected tensors of a file."""
    held = {name: SimpleNamespace(shape=shape) for name, shape in layout.tensors.items()}
    model = count(layout.config)
    found = expand_names(list_gguf_tensors(model.tensors, held, layout.architecture, model))
    mtp = any(tensor.part == "mtp" and name in held for name, tensor in found.items())
    return {
        name: tensor.shape for name, tensor in found.items() if tensor.tied_to is None and (tensor.part != "mtp" or mtp)
    }


@in_batches("name", sorted(LAYOUTS, key=lambda name: name not in VARIED), size=40)
def test_every_tensor_has_the_converter_s_name_and_shape(name: str) -> None:
    tensors = LAYOUTS[name].tensors
    assert expect_shapes(LAYOUTS[name]) == {name: tensors[name] for name in tensors if name not in ROPE_FACTORS}


def test_every_architecture_is_compared_with_the_converter_or_shares_names_with_one_that_is() -> None:
    """An architecture may share the modules of another, or differ in its head; some are by hand, because today's
    converter fails.
    """
    compared = {layout.config["model_type"] for layout in LAYOUTS.values()}
    assert [name for name in read_index("gguf") if not {name, ALIKE.get(name)} & compared] == []


ALIKE = {
    "bitnet": "llama",  # and two norms: test_norms_inside_bitnet_layers_have_names
    "camembert": "roberta",
    "gemma3.Gemma3ForCausalLM": "gemma3_text",
    "gemma4.Gemma4ForCausalLM": "gemma4_text",
    "glm4v_moe_text": "glm4_moe",
    "glm4v_text": "glm4",
    "glm_ocr_text": "glm_ocr",
    "internlm": "llama",
    "kimi_k2": "deepseek_v3",
    "llama4.Llama4ForCausalLM": "llama4_text",
    "qwen2_5_vl_text": "qwen2_5_vl",
    "qwen2_vl_text": "qwen2_vl",
    "qwen3_5.Qwen3_5ForCausalLM": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_5_moe.Qwen3_5MoeForCausalLM": "qwen3_5_moe_text",
    "qwen3_vl_moe_text": "qwen3_vl_moe",
    "qwen3_vl_text": "qwen3_vl",
    "t5.T5EncoderModel": "t5",
}


def test_norms_inside_bitnet_layers_have_names() -> None:
    """LLM_TENSOR_ATTN_SUB_NORM and LLM_TENSOR_FFN_SUB_NORM of llama-arch.cpp."""
    names = {get_gguf_name(tensor.name, "bitnet") for tensor in count({"model_type": "bitnet"}).tensors}
    assert {"blk.{layer}.attn_sub_norm.weight", "blk.{layer}.ffn_sub_norm.weight"} <= names


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
    model = count({"model_type": "llama"})
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
    counts = {id: count(id) for id in LANGUAGES}
    assert {id: find_layout(one.architecture, None, one.sizes) for id, one in counts.items()} == LANGUAGES


LANGUAGES = {  # {model: general.architecture}: Mistral3Model and LlamaModel of conversion/, of the class in text_config
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
