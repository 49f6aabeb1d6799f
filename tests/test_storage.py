"""Bytes of quantised models as stored: predicted from the config, compared with files of the libraries and with
releases.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.errors import ParamcountError
from paramcount.formats.patterns import compile_pattern
from tests.running import Runner

DATA = Path(__file__).parent / "data"
WRITTEN: dict[str, dict[str, Any]] = json.loads((DATA / "quantised.json").read_text(encoding="utf-8"))
HEADERS = (
    "deepseek_v3-FP8",
    "gpt2-GPTQ",
    "gpt_oss-MXFP4",
    "llama-AWQ",
    "llama-GPTQ",
    "other/llama-NVFP4",
    "qwen3_moe-FP8_together",
)
LLAMA = {
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 160,
    "dtype": "bfloat16",
}
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}
INT4 = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 64}


def count_quantised(config: dict[str, Any], said: Any, **others: Any) -> pc.Count:
    return pc.count(config | {"quantization_config": said} | others)


def find_storage(config: dict[str, Any], said: Any, **others: Any) -> Any:
    found = count_quantised(config, said, **others)
    assert found.storage is not None, found.notes
    return found.storage


def compressed_section(weights: dict[str, Any], form: str, **others: Any) -> dict[str, Any]:
    groups = {"group_0": {"targets": ["Linear"], "weights": weights}}
    return {
        "quant_method": "compressed-tensors",
        "format": form,
        "config_groups": groups,
        "ignore": ["lm_head"],
        "version": "0.20.0",
    } | others


# ---- what libraries write


@pytest.mark.parametrize("name", [name for name in WRITTEN if "dq" not in name])
def test_the_predicted_bytes_match_the_library_s_file(name: str) -> None:
    saved = WRITTEN[name]
    count = pc.count(saved["config"])
    assert (count.stored_bytes, count.notes) == (sum(saved["bytes"].values()), ())
    assert count.storage is not None
    assert count.storage.exact


def test_with_double_quantisation_only_the_digits_of_one_float_per_matrix_are_unknown() -> None:
    saved = WRITTEN["llama-nf4dq"]
    count = pc.count(saved["config"])
    assert count.storage is not None
    assert not count.storage.exact
    assert abs(count.storage.bytes - sum(saved["bytes"].values())) <= 3 * 14  # matrices


@pytest.mark.parametrize("name", HEADERS)
def test_the_predicted_bytes_match_the_header_in_the_same_folder(name: str) -> None:
    saved = json.loads((DATA / "headers" / f"{name}.json").read_text(encoding="utf-8"))
    count = pc.count(saved["config"])
    written = sum(entry["data_offsets"][1] - entry["data_offsets"][0] for entry in saved["header"].values())
    # Its writer cast the routing biases to BF16, which from_pretrained keeps in float32: _keep_in_fp32_modules_strict.
    cast = 2 * count.buffers if name == "deepseek_v3-FP8" else 0
    assert count.stored_bytes == written + cast


# ---- releases


@pytest.mark.parametrize(
    ("id", "bytes"),
    [
        # 680,571,043,840 of FP8, 3,918,786,560 of BF16 and 41,555,600 of F32: the values by type of
        # huggingface.co/deepseek-ai/DeepSeek-V3, which sum
        # to the published 684,531,386,000. Its index says 688,586,727,753, the size of the files with their headers.
        ("deepseek-v3", 680_571_043_840 + 2 * 3_918_786_560 + 4 * 41_555_600),
        ("gpt-oss-20b", 13_761_264_768),  # total_size of its index: tests/data/indices.json
        # Bytes of all tensors by the headers of its 61 files, as a public audit of Kimi's releases on github recomputed
        # them.
        ("kimi-k2", 1_029_173_256_720),
    ],
)
def test_the_predicted_bytes_match_the_release(id: str, bytes: int) -> None:
    assert pc.count(id).stored_bytes == bytes


def test_json_has_the_stored_bytes_and_the_scheme(run: Runner) -> None:
    data = json.loads(run("gpt-oss-20b", "--json").out)
    assert data["stored_bytes"] == 13_761_264_768
    assert data["quantization"] == {
        "method": "mxfp4",
        "scheme": "MXFP4",
        "quantized": 19_110_297_600,
        "exact": True,
        "mtp": False,
    }


# ---- by hand


def test_fp8_has_a_byte_per_value_and_a_scale_per_block_tensor_or_matrix() -> None:
    linear = 2 * (4 * 128 * 128 + 3 * 128 * 192)
    rest = 2 * (2 * 160 * 128 + 5 * 128)
    scales = 2 * (4 * 1 + 3 * 2)
    assert find_storage(LLAMA, FP8).bytes == linear + rest + 4 * scales
    assert find_storage(LLAMA, FP8 | {"weight_block_size": None}).bytes == linear + rest + 4 * 14
    assert find_storage(LLAMA, FP8 | {"activation_scheme": "static"}).bytes == linear + rest + 4 * scales + 4 * 14
    outputs = 2 * (4 * 128 + 2 * 192 + 128)  # integrations/fbgemm_fp8.py, FbgemmFp8Linear
    assert find_storage(LLAMA, {"quant_method": "fbgemm_fp8"}).bytes == linear + rest + 4 * outputs
    assert (
        find_storage(LLAMA, FP8 | {"modules_to_not_convert": ["lm_head", "model.layers.1"]}).bytes
        == linear * 3 // 2 + rest + 2 * scales
    )


def test_a_config_without_a_type_states_its_assumption() -> None:
    untyped = {key: value for key, value in LLAMA.items() if key != "dtype"}
    found = find_storage(untyped, FP8)
    assert (found.bytes, found.exact) == (find_storage(LLAMA, FP8).bytes, False)
    assert found.scheme == "FP8, 128 × 128 blocks, BF16 assumed for the rest"
    assert find_storage(untyped, FP8, torch_dtype="float32").bytes == found.bytes + 2 * (2 * 160 * 128 + 5 * 128)


def test_an_ignored_module_is_not_packed_and_a_regular_expression_is_read() -> None:
    plain, packed = 2 * 128 * 192, 128 * 192 // 2 + 2 * 128 * 192 // 64 + 16
    all_of_it = find_storage(LLAMA, compressed_section(INT4, "pack-quantized")).bytes
    without = find_storage(
        LLAMA,
        compressed_section(
            INT4, "pack-quantized", ignore=["lm_head", r"re:.*mlp\.(gate|up)_proj$", "model.layers.0.mlp.down_proj"]
        ),
    ).bytes
    assert without - all_of_it == (2 * 2 + 1) * (plain - packed)


# ---- what gives no number


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ({"quant_method": "made-up"}, "has the quant_method 'made-up', which transformers does not support"),
        ({"bits": 4}, "has no quant_method, so transformers cannot load it"),
        ({"quant_method": "aqlm"}, "uses aqlm with options whose stored size paramcount cannot compute"),
        (
            {"quant_method": "auto-round", "packing_format": "auto_round:auto_gptq", "bits": 4},
            "uses auto-round with options whose stored size",
        ),
        ({"quant_method": "gptq", "bits": 4, "dynamic": {"-:.*": {}}}, "uses gptq with options whose stored size"),
        ([4], "= [4] (expected a JSON object)"),
        (FP8 | {"weight_block_size": [0, 128]}, "weight_block_size = [0, 128]"),
        (FP8 | {"modules_to_not_convert": "lm_head"}, "modules_to_not_convert = 'lm_head'"),
        ({"load_in_4bit": True, "load_in_8bit": True}, "sets both load_in_8bit and load_in_4bit"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 100}, "uses GPTQ 4-bit, which cannot store"),
        (compressed_section(INT4, "marlin-24"), "has a group in the format 'marlin-24'"),
        (
            compressed_section(INT4, "pack-quantized", ignore=["re:(a+)+b"]),
            "is a regular expression that may take long to match",
        ),
        (
            compressed_section(INT4 | {"strategy": "channels"}, "pack-quantized"),
            "has weights with the strategy 'channels'",
        ),
    ],
)
def test_a_scheme_of_unknown_size_leaves_the_count_and_adds_a_note(said: Any, note: str) -> None:
    count = count_quantised(LLAMA, said)
    assert (count.total, count.stored_bytes) == (pc.count(LLAMA).total, None)
    (text,) = [text for text in count.notes if text.startswith("stored bytes are unknown: quantization_config ")]
    assert note in text


def test_the_quantised_matrices_are_not_guessed() -> None:
    experts = {key: value for key, value in WRITTEN["qwen3_moe-nf4"]["config"].items() if key != "transformers_version"}
    assert "before version 5" in pc.count(experts).notes[-1]
    falcon = {"model_type": "falcon", "num_hidden_layers": 1}
    assert "are linear layers is unknown" in count_quantised(falcon, {"load_in_8bit": True}).notes[-1]


@pytest.mark.parametrize("text", ["(a+)+", ".*a.*b.*c", "(?=x)", "a{1000}{1000}", "a**", "(.*)*", "[", "x" * 501])
def test_a_regular_expression_that_may_take_long_is_rejected(text: str) -> None:
    with pytest.raises(ParamcountError, match="regular expression"):
        compile_pattern(text)
