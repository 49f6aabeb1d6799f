"""Formats of weights: bytes in a format against files that its library writes, and what the output says about it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paramcount as pc
from paramcount.checkpoints.packed import groups
from paramcount.costs.dtypes import find_weight_format
from paramcount.errors import ParamcountError
from paramcount.formats import weights
from paramcount.formats.weights import load_formats
from paramcount.formats.weights.plain import DTYPES as PLAIN
from tests.gpt2_files import write_weights
from tests.headers import load_saved, total_bytes
from tests.running import Runner
from tests.small_models import LLAMA, TOKENS, make_arrays

DATA = Path(__file__).parent / "data"
WRITTEN: dict[str, dict[str, Any]] = json.loads((DATA / "quantised.json").read_text(encoding="utf-8"))
# {file: its format}
FILES = {
    "llama-bnb8": "bnb-int8",
    "qwen2-bnb8": "bnb-int8",
    "qwen3_moe-bnb8": "bnb-int8",
    "llama-nf4": "nf4",
    "qwen3_moe-nf4": "nf4",
    "llama-int4g": "int4-g64",
    "qwen2-int4g": "int4-g64",
    "llama-int8": "int8",
    "llama-fp8": "fp8",
    "llama-fp8-tensor": "fp8-tensor",
    "llama-fp8t": "fp8-tensor",
    "llama-fp8ch": "fp8-row",
    "qwen2-fp8ch": "fp8-row",
    "llama-nvfp4": "nvfp4",
    "llama-gptq2": "gptq-2bit-g64",
    "llama-gptq3": "gptq-3bit-g64",
    "llama-gptq4": "gptq-4bit-g64",
    "llama-gptq8": "gptq-8bit-g64",
    "qwen2-gptq4": "gptq-4bit-g64",
    "llama-awq4": "awq-4bit-g64",
    "qwen2-awq4": "awq-4bit-g64",
}
PACKED = {name for format in load_formats() if format.name not in ("", "GGUF") for name in format.dtypes}


def strip_config(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != "quantization_config"}


# ---- bytes


@pytest.mark.parametrize("name", FILES)
def test_the_weights_of_a_format_are_as_large_as_in_its_library_s_file(name: str) -> None:
    saved = WRITTEN[name]
    assert pc.memory(strip_config(saved["config"]), dtype=FILES[name]).weights_bytes == sum(saved["bytes"].values())


def test_mxfp4_packs_the_experts_of_a_release_and_nothing_else() -> None:
    # total_size of the index of openai/gpt-oss-20b
    assert pc.memory("gpt-oss-20b", dtype="mxfp4").weights_bytes == 13_761_264_768


@pytest.mark.parametrize(("name", "dtype"), [("llama-tied", "f16"), ("qwen3", "bf16"), ("mixtral", "float32")])
def test_a_plain_dtype_is_as_large_as_in_a_saved_file(name: str, dtype: str) -> None:
    config, size = load_saved(name).config, total_bytes(load_saved(name).tensors)
    assert config["dtype"] == "float32"
    assert 4 * pc.memory(config, dtype=dtype).weights_bytes == size * {"F16": 2, "BF16": 2, "F32": 4}[PLAIN[dtype]]


def test_double_quantisation_stores_scales_as_bytes() -> None:
    # bitsandbytes: a byte per block of 64 values instead of 4; a float per 256 of these bytes, and their code book
    blocks = [128 * 128 // 64] * 4 + [128 * 64 // 64] * 4 + [128 * 192 // 64] * 6
    config = strip_config(WRITTEN["llama-nf4"]["config"])
    nested, simple = (pc.memory(config, dtype=dtype).weights_bytes for dtype in ("nf4-double", "nf4"))
    saved = sum(4 * n - n - 4 * -(-n // 256) - 4 * 256 for n in blocks)
    described = 14 * len(', "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.01234567890123456')
    assert simple - nested == saved - described


def test_the_guide_names_the_formats() -> None:
    guide = (Path(pc.__file__).parent / "docs" / "commands.md").read_text(encoding="utf-8")
    table = guide.partition("| `--dtype` | format |")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines() for name in re.findall("`(.*?)`", "|".join(row.split("|")[:2]))}
    assert all(find_weight_format(name) for name in named)
    assert {*(name for name in PACKED if find_weight_format(f"{name}-g128") is None), "bf16", "f16", "f32"} <= named


# ---- what the output says


def test_a_stored_format_is_listed_once(run: Runner) -> None:
    memory = pc.memory("deepseek-v3")
    labels = [cost.dtype for cost in memory.formats]
    assert memory.dtype == "FP8 (128 × 128 blocks, as stored)"
    assert [label for label in labels if label.startswith("FP8")] == [memory.dtype]
    assert labels.index(memory.dtype) == 2  # in its place among the usual ones
    assert [cost.dtype for cost in pc.memory("gpt-oss-20b").formats][:2] == ["MXFP4 (as stored)", "FP32"]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("llama-gptq4", "GPTQ 4-bit (group 64, as stored)"),
        ("llama-awq4", "AWQ 4-bit (group 64, as stored)"),
        ("llama-int4g", "INT4 by compressed-tensors (as stored)"),
        ("llama-fp8", "FP8 (128 × 128 blocks, as stored)"),
    ],
)
def test_the_label_of_a_stored_format_reads_like_that_of_a_dtype(name: str, label: str) -> None:
    assert pc.memory(WRITTEN[name]["config"]).dtype == label


def test_what_is_not_packed_has_the_label_of_its_dtype() -> None:
    memory = pc.memory(WRITTEN["llama-awq4"]["config"])
    assert memory.formats[0].note == "embedding, norm and lm_head in FP16"
    assert pc.memory("gpt2-small", dtype="F16").dtype == "FP16"


def test_mtp_layers_are_not_loaded(run: Runner) -> None:
    note = "the MTP layers (11,610,067,968 parameters) are not loaded"
    assert pc.memory("deepseek-v3").notes == (note,)
    assert f"note: {note}" in run("memory", "deepseek-v3").err
    assert pc.memory("llama-3.1-8b").notes == ()


def test_experts_in_one_tensor_are_assumed_to_be_packed_one_by_one() -> None:
    assert pc.memory("gpt-oss-20b", dtype="gptq-4bit-g64").notes == (
        "assumes that GPTQ 4-bit (group 64) packs the matrices of each expert separately",
    )
    assert pc.memory("gpt-oss-20b", dtype="mxfp4").notes == ()
    assert pc.memory("gpt-oss-20b").notes == ()


def test_experts_of_attention_are_no_linear_layers_either() -> None:
    """JetMoeParallelExperts has a parameter of its own: bitsandbytes packs keys and values alone, [4096, 2048]."""
    memory = pc.memory({"model_type": "jetmoe", "num_hidden_layers": 1}, dtype="nf4")
    queries, n = 2 * 8 * 2048 * 2048, 4096 * 2048
    description = len('{"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [4096, 2048]}')
    assert memory.weights_by_component["qkv"] == queries + n // 2 + 4 * n // 64 + 4 * 16 + description


def test_matrices_that_a_format_cannot_pack_are_named() -> None:
    # 24 of 1,024 inputs do not divide by 80
    config = {"model_type": "llama", "hidden_size": 1024, "intermediate_size": 1280, "num_hidden_layers": 2}
    config |= {"num_attention_heads": 8}
    memory = pc.memory(config, dtype="gptq-4bit-g80")
    text = "12 matrices stay in BF16, which GPTQ 4-bit (group 80) cannot divide into groups or words"
    (note,) = memory.notes
    assert note.startswith(f"{text}: model.layers.{{layer}}.self_attn.q_proj, ")
    assert memory.weights_by_component["qkv"] == 2 * 3 * 2 * 1024 * 1024


AQLM = {"model_type": "llama", "quantization_config": {"quant_method": "aqlm"}}
OLD_EXPERTS = {key: value for key, value in WRITTEN["qwen3_moe-nf4"]["config"].items() if key != "transformers_version"}
STACKED = {"model_type": "gpt_oss", "num_hidden_layers": 1, "dtype": "bfloat16"}
STACKED |= {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (AQLM, "uses aqlm with options whose stored size"),
        (OLD_EXPERTS, "was written by transformers before version 5, or by an unknown version"),
        (STACKED, "whose layout for experts that share one tensor is unknown"),
    ],
)
def test_a_stored_format_of_unknown_size_asks_for_a_dtype(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(ParamcountError, match=f"quantization_config .*{reason}.*; choose a dtype"):
        pc.memory(config)
    assert pc.memory(config, dtype="bf16").weights_bytes == 2 * pc.count(config).total


# ---- a format is one file

GUIDE = Path(pc.__file__).parent / "docs" / "add-a-weight-format.md"
CACHES: tuple[Any, ...] = (
    weights.get_format,
    weights.list_files, weights.load_formats, find_weight_format, groups.list_patterns,
    groups.list_telling_endings, groups.list_signatures,
)  # fmt: skip


@pytest.fixture
def own_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The format of the guide, in a file of its own."""
    (block,) = re.findall('```python\n(""".*?)```', GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "tern2.py").write_text(block, encoding="utf-8")
    monkeypatch.setattr(weights, "__path__", [*weights.__path__, str(tmp_path)])
    for cached in CACHES:
        cached.cache_clear()
    yield
    sys.modules.pop("paramcount.formats.weights.tern2", None)
    for cached in CACHES:
        cached.cache_clear()


@pytest.mark.usefixtures("own_format")
def test_a_format_of_one_file_is_planned_verified_and_run(tmp_path: Path) -> None:
    config = {**LLAMA, "dtype": "float32"}
    config["quantization_config"] = {"quant_method": "tern2", "modules_to_not_convert": ["lm_head", "model.layers.0"]}
    arrays, plain, size = make_arrays(LLAMA), make_arrays(LLAMA), 0
    types: dict[str, str] = {}
    for name, array in plain.items():
        if not re.search(r"layers\.[12]\..*_proj\.weight", name):
            size += 4 * array.size
            continue
        outputs, inputs = array.shape
        stem = name.removesuffix("weight")
        # Two bits each, the lowest first: 2, 0, 1, 2 are 1, −1, 0, 1.
        arrays[f"{stem}tern_weight"] = np.full((outputs, inputs // 4), 0b10_01_00_10 - 256)
        arrays[f"{stem}tern_scale"] = np.arange(outputs, dtype=np.float32) / 64
        types |= {f"{stem}tern_weight": "U8", f"{stem}tern_scale": "F16"}
        plain[name] = np.tile([1, -1, 0, 1], (outputs, inputs // 4)) * (np.arange(outputs)[:, None] / 64)
        size += outputs * inputs // 4 + 2 * outputs
        del arrays[name]
    write_weights(tmp_path / "model.safetensors", arrays, types=types)
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert pc.memory(config).weights_bytes == size
    assert pc.memory(LLAMA, dtype="tern2").weights_bytes < size
    verification = pc.verify(str(tmp_path), str(tmp_path))
    assert (verification.ok, verification.scheme, verification.totals.bytes) == (True, "TERN2", size)
    found = pc.run(str(tmp_path), str(tmp_path), TOKENS).logits
    assert np.allclose(found, pc.run(LLAMA, plain, TOKENS).logits, atol=2e-5)
    assert weights.Abilities("TERN2", True, True, True) in weights.list_abilities()


@pytest.mark.usefixtures("own_format")
def test_a_scale_of_a_format_of_one_file_without_values_is_a_fault(tmp_path: Path) -> None:
    name = "model.layers.1.self_attn.q_proj.tern_scale"
    write_weights(tmp_path / "model.safetensors", make_arrays(LLAMA) | {name: np.ones(16)}, types={name: "F16"})
    assert pc.verify(LLAMA, str(tmp_path)).faults == (f"{name}: packed weights are missing",)


def test_an_error_says_what_can_be_done_with_a_format(tmp_path: Path) -> None:
    assert [weights.describe_abilities(weights.get_format(name)) for name in ("fp8", "gguf", "int8", "others")] == [
        "FP8 weights can be planned, verified and run",
        "GGUF weights can be planned and verified, but not run",
        "INT8 weights can be planned, but not verified or run",
        " weights cannot be planned, verified or run",
    ]
