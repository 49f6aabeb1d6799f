"""The model's tensors in a GGUF file, as llama.cpp's converter names and shapes them, and files of the gguf package in
its layout, compared with their model: intact, quantised, damaged.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.api import count, verify
from paramcount.architectures import read_index
from paramcount.checkpoints.checkpoint import Checkpoint, File, FileTensor
from paramcount.checkpoints.matching import expand_names
from paramcount.checkpoints.verify import Verification, verify_checkpoint
from paramcount.checkpoints.writers.gguf_names import (
    find_layout,
    get_gguf_name,
    list_gguf_tensors,
)
from paramcount.checkpoints.writers.gguf_tables import ROPE_FACTORS, WITHOUT_PADDING
from paramcount.counting.count import Count
from paramcount.flow import TensorRow
from paramcount.formats.weights.gguf import BLOCKS
from paramcount.loading import load
from paramcount.zoo import count_model
from tests.batches import in_batches
from tests.damaging import DAMAGES, DamagedCheckpoint, Finding, list_complaints, list_findings, sample_names
from tests.gguf_writing import LAYOUTS, ROBERTA, VARIED, Layout, write_gguf
from tests.headers import Shapes
from tests.patterns import expand_pattern
from tests.refusing import assert_one_line, command_error

MANY = bool(os.environ.get("EXAMPLES"))
WIDE = LAYOUTS["llama, wide"]


@in_batches("name", sorted(LAYOUTS, key=lambda name: name not in VARIED), size=24)
def test_a_file_in_the_converter_s_layout_is_complete(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    found = verify(layout.config, write_gguf(tmp_path / "m.gguf", layout))
    assert (found.ok, list_complaints(found)) == (True, "")
    assert found.expected == found.found
    assert (found.format, found.shapes_checked, found.by_shape, found.tensors) == ("gguf", True, 0, len(layout.tensors))
    assert found.size.predicted == found.size.found == found.totals.bytes
    assert {
        line.pattern for line in found.lines if line.finding.what == "buffer"
    } >= layout.tensors.keys() & ROPE_FACTORS.keys()
    assert any("rows" in remark for remark in found.remarks) == (
        layout.architecture in WITHOUT_PADDING or layout.config["model_type"] in ROBERTA
    )


@pytest.mark.parametrize("types", ["F16", "BF16", "Q4_0", "Q8_0", "Q2_K", "Q4_K", "Q6_K", "IQ4_XS", "MXFP4"])
def test_a_quantised_file_is_the_same_model(types: str, tmp_path: Path) -> None:
    found = verify(WIDE.config, write_gguf(tmp_path / "m.gguf", WIDE, types=types))
    assert (found.ok, list_complaints(found)) == (True, "")
    assert found.expected == found.found
    assert sum(found.found.values()) == pc.count(WIDE.config).total
    assert found.size.predicted == found.size.found == found.totals.bytes
    assert found.scheme == (None if types in ("F16", "BF16") else f"GGUF, mostly {types}")


@pytest.mark.parametrize("name", ["llama, wide", "gemma2-gemma2", "gpt2-gpt2", "llama-llama-1"])
def test_only_an_exact_copy_of_a_tied_embedding_may_be_stored(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    assert "output.weight" not in layout.tensors
    stored = layout._replace(tensors=layout.tensors | {"output.weight": layout.tensors["token_embd.weight"]})
    copies = {"output.weight": "token_embd.weight"}
    for path, of, is_copy in (("a.gguf", copies, True), ("b.gguf", {}, False)):
        found = verify(layout.config, write_gguf(tmp_path / path, stored, types="Q4_K", copies=of))
        (line,) = [line for line in found.lines if line.pattern == "output.weight"]
        assert (found.ok, line.finding.what, line.finding.kind == "differs") == (is_copy, "tied duplicate", not is_copy)


def test_parts_that_the_converter_omits_are_noted(tmp_path: Path) -> None:
    layout = LAYOUTS["gemma3-gemma3"]
    found = verify(layout.config, write_gguf(tmp_path / "m.gguf", layout))
    assert found.remarks == (
        "not checked: vision, projector (in a separate mmproj file)",
        "token_embd.weight: 6 of 96 rows are padding that the converter drops",
    )


def test_a_file_of_another_architecture_is_a_one_line_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_gguf(tmp_path / "m.gguf", WIDE._replace(architecture="qwen2"))
    assert command_error(capsys, "verify", "llama-3.1-8b", str(path)).endswith(
        "general.architecture = 'qwen2', but the model is llama (expected llama)"
    )


# ---- damage


def verify_tensors(layout: Layout, tensors: Shapes) -> Verification:
    """What verify reports for a file with these tensors."""
    file = "m.gguf"
    holds = {name: FileTensor(file, "F32", shape, 4 * prod(shape)) for name, shape in tensors.items()}
    path = Path(file)
    checkpoint = Checkpoint(
        path, "gguf", holds, (File(file, path, None),), metadata={"general.architecture": layout.architecture}
    )
    return verify_checkpoint(load(layout.config), checkpoint)


def is_damage(case: DamagedCheckpoint, layout: Layout) -> bool:
    """In GGUF, an outermost axis of 1 does not matter, and some tables may lack rows."""
    for said in case.says:
        if said.finding == "wrong shape" and said.held and said.declared:
            fewer = said.held[1:] == said.declared[1:] and said.held[0] < said.declared[0]
            cut = (said.name == "token_embd.weight" and layout.architecture in WITHOUT_PADDING) or layout.config[
                "model_type"
            ] in ROBERTA
            if said.held == (1, *said.declared) or (fewer and cut):
                return False
    return True


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", VARIED)
def test_every_kind_of_damage_to_a_tensor_is_reported(name: str, damage: str) -> None:
    layout = LAYOUTS[name]
    tensors = {tensor: ("F32", shape) for tensor, shape in layout.tensors.items() if tensor not in ROPE_FACTORS}
    if layout.architecture in WITHOUT_PADDING:
        tensors["token_embd.weight"] = ("F32", (96, 32))  # all rows, as declared
    chosen = list(tensors) if MANY else sample_names(list(tensors), 3)
    for case in itertools.chain.from_iterable(DAMAGES[damage](tensors, tensor) for tensor in chosen):
        if is_damage(case, layout):
            found = verify_tensors(layout, {tensor: shape for tensor, (_, shape) in case.tensors.items()})
            assert (found.ok, list_findings(found)) == (False, set(case.says))


def test_partly_separate_experts_are_not_read_as_stacked() -> None:
    layout = LAYOUTS["mixtral, experts one by one"]
    kept = {tensor: shape for tensor, shape in layout.tensors.items() if tensor != "blk.0.ffn_gate.3.weight"}
    assert list_findings(verify_tensors(layout, kept)) == {
        Finding("missing", "blk.0.ffn_gate.3.weight", (48, 32), None)
    }


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


# ---- released files, as llama.cpp tells of them when it loads one: how many tensors of each type, and the size of all

# tests/data/gguf_dumps.json has what its logs print, as public files quote them, and the tensors names and shapes by
# hand, from the configs of the models and llama.cpp's gguf-py/gguf/constants.py. Of types that change from layer to
# layer a log says how many tensors have each, not which: here the first layers have the wider one.
DUMPS: dict[str, dict[str, Any]] = {
    dump["of"]: dump
    for dump in json.loads((Path(__file__).parent / "data" / "gguf_dumps.json").read_text(encoding="utf-8"))
}
SIZE = re.compile(r"size = ([\d.]+) ([GM])iB \(([\d.]+) BPW\)")
PATH = Path("model.gguf")


def parse_dump(dump: dict[str, Any]) -> dict[str, FileTensor]:
    held: dict[str, FileTensor] = {}
    for pattern, (shape, dtype) in dump["tensors"].items():
        values, size, _ = BLOCKS[dtype]
        held |= {
            name: FileTensor(PATH.name, dtype, tuple(shape), prod(shape) // values * size, 0)
            for name in expand_pattern(pattern)
        }
    return held


@pytest.mark.parametrize("name", DUMPS)
def test_llama_cpp_s_log_of_a_release_matches_its_model(name: str) -> None:
    dump = DUMPS[name]
    held = parse_dump(dump)
    assert Counter(tensor.dtype for tensor in held.values()) == dump["types"]
    size = sum(tensor.size or 0 for tensor in held.values())
    checkpoint = Checkpoint(
        PATH, "gguf", held, (File(PATH.name, PATH, size),), metadata={"general.architecture": dump["architecture"]}
    )
    found = verify_checkpoint(load(dump["model"]), checkpoint)
    assert (found.ok, found.faults, found.by_shape) == (True, (), 0)
    assert found.found == found.expected
    assert (found.size.found, found.size.predicted) == (size, size)
    said, unit, bits = SIZE.search(dump["says"]).groups()  # type: ignore[union-attr]
    assert f"{size / {'G': 2**30, 'M': 2**20}[unit]:.2f}" == said
    assert found.totals.bits is not None
    assert f"{float(found.totals.bits):.2f}" == bits


def test_logs_cover_the_usual_layouts() -> None:
    assert {dump["architecture"] for dump in DUMPS.values()} == {
        "llama",
        "qwen2",
        "qwen3moe",
        "gpt-oss",
        "gemma3",
        "phi3",
        "deepseek2",
    }
