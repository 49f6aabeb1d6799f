"""Bytes of quantised models as stored: predicted from the config, compared with files of the libraries and with
releases.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.counting.quantisation.scales import get_scales, make_scales
from paramcount.errors import ParamcountError
from paramcount.flow import TensorRow
from paramcount.formats.patterns import compile_pattern
from paramcount.formats.quantization_config import PackedGroup, Selection
from tests.headers import PACKED, load_saved, total_bytes
from tests.running import Runner

DATA = Path(__file__).parent / "data"
WRITTEN: dict[str, dict[str, Any]] = json.loads((DATA / "quantised.json").read_text(encoding="utf-8"))
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


@pytest.mark.parametrize("name", [*PACKED, "other/llama-NVFP4"])
def test_the_predicted_bytes_match_the_header_in_the_same_folder(name: str) -> None:
    saved = load_saved(name)
    count = pc.count(saved.config)
    # Its writer cast the routing biases to BF16, which from_pretrained keeps in float32: _keep_in_fp32_modules_strict.
    cast = 2 * count.buffers if name == "deepseek_v3-FP8" else 0
    assert count.stored_bytes == total_bytes(saved.tensors) + cast


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


# ---- the format in which zoo entries were released, as their published config.json states it

FP8_BLOCKS = {"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]}


@pytest.mark.parametrize("id", ["kimi-k2.5", "kimi-k2-thinking"])
def test_only_the_routed_experts_of_kimi_are_stored_in_int4(id: str) -> None:
    """60 layers of 384 experts with three matrices of 7,168 × 2,048; 31,708,938,240 scales, as the release has."""
    experts = 60 * 384 * 3 * 7168 * 2048
    storage = pc.count(id).storage
    assert storage is not None
    assert (storage.quantized, experts // 32) == (experts, 31_708_938_240)
    assert storage.scheme == "INT4 by compressed-tensors"


@pytest.mark.parametrize(
    ("id", "scheme"),
    [
        ("mimo-v2-flash", "FP8, 128 × 128 blocks"),
        ("deepseek-v4-flash", "FP8, 128 × 128 blocks; experts in FP4"),
        ("deepseek-v4-pro", "FP8, 128 × 128 blocks; experts in FP4"),
        ("devstral-2-123b", "FP8, one scale per tensor"),
        ("devstral-small-2-24b", "FP8, one scale per tensor"),
        ("ministral-3-8b", "FP8, one scale per tensor"),
        ("ministral-3-14b", "FP8, one scale per tensor"),
    ],
)
def test_an_entry_is_stored_as_its_publisher_released_it(id: str, scheme: str) -> None:
    storage = pc.count(id).storage
    assert storage is not None
    assert storage.scheme == scheme


def test_memory_measures_the_released_format_by_default(run: Runner) -> None:
    shown = json.loads(run("memory", "kimi-k2.5", "--gpu", "h200", "--tp", "8", "--json").out)
    assert shown["dtype"] == "INT4 by compressed-tensors (as stored)"
    count = pc.count("kimi-k2.5")
    assert count.stored_bytes is not None
    assert shown["weights_bytes"] == count.stored_bytes - 4 * count.buffers


def test_fp4_experts_have_two_values_per_byte_and_a_scale_per_32() -> None:
    """Source: FP8Experts of transformers 5.23; DeepseekV4Config moves expert_dtype into the block."""
    entry = zoo.load_entry("deepseek-v4-flash").sizes
    experts = sum(t.elements for t in pc.count("deepseek-v4-flash").tensors if t.component.startswith("experts"))
    config = {"architecture": "deepseek_v4", "config": entry.to_dict(with_defaults=False)}
    eight = pc.count(config | {"quantization_config": FP8_BLOCKS}).stored_bytes
    four = pc.count(config | {"quantization_config": FP8_BLOCKS | {"expert_dtype": "fp4"}}).stored_bytes
    assert eight is not None and four is not None
    # Blocks of 128 × 128 divide every expert: 2,048 × 4,096.
    assert eight - four == experts + experts // 128**2 - experts // 2 - experts // 32


def test_a_block_that_is_stated_twice_or_cannot_be_read_is_an_error() -> None:
    sizes = zoo.load_entry("deepseek-v3").sizes.to_dict(with_defaults=False)
    twice = {"legacy_buffers": False, "mtp": False, "copies": [], "quantisation": "fp8"}
    document = {"architecture": "deepseek_v3", "config": sizes, "quantization_config": FP8_BLOCKS}
    with pytest.raises(pc.ParamcountError, match="quantization_config is set twice"):
        pc.count(document | {"release": twice})
    with pytest.raises(pc.ParamcountError, match="quantization_config has the quant_method 'fp9'"):
        pc.count(document | {"quantization_config": {"quant_method": "fp9"}})


# ---- scales: block by block as the releases store them

NO_BLOCKS: list[Any] = [None, [128], [128, 0], [True, 128], [-1, 1], "128", [128, 1e2], [2**40, 1], {}]
QWEN = {"model_type": "qwen3_moe", "num_hidden_layers": 4}


def get_group(method: str, excluded: tuple[str, ...] = ()) -> PackedGroup:
    group = get_scales(method, {})
    assert group is not None
    return group._replace(selection=group.selection._replace(excluded=excluded))


def group_scales(count: pc.Count, group: PackedGroup) -> dict[str, TensorRow]:
    """{name of a tensor: its scales}"""
    return {tensor.name: found for tensor in count.tensors if (found := make_scales(tensor, group))}


# ---- whole releases


@pytest.mark.parametrize(
    ("id", "items"),
    [  # tests/data/published_totals.csv; of Kimi K2 by hand
        ("deepseek-v3", {"scales": 40_838_232, "mtp_scales": 702_264}),
        ("deepseek-r1", {"scales": 40_838_232, "mtp_scales": 702_264}),
        ("gpt-oss-20b", {"scales": 597_196_800}),
        ("gpt-oss-120b", {"scales": 3_583_180_800}),
        ("kimi-k2", {"scales": 62_495_192}),
        ("llama-3.1-8b", {}),
    ],
)
def test_a_release_has_the_number_of_scales_that_its_publisher_states(id: str, items: dict[str, int]) -> None:
    assert {name: n for name, n in pc.count(id).release.items() if name.endswith("scales")} == items


# ---- tensor by tensor


def test_mxfp4_quantises_only_experts_along_their_inputs() -> None:
    scales = group_scales(pc.count("gpt-oss-20b"), get_group("mxfp4"))
    assert {(found.name.rpartition(".")[2], found.shape, found.copies) for found in scales.values()} == {
        ("gate_up_proj_scales", (32, 5760, 90), 12),
        ("down_proj_scales", (32, 2880, 90), 12),
    }


def test_encoders_and_vectors_have_no_scales() -> None:
    for document in ({"model_type": "qwen3_vl"}, {"model_type": "mamba"}, {"model_type": "qwen3_next"}):
        for name in group_scales(pc.count(document), get_group("fp8")):
            assert not any(word in name for word in ("visual", "bias", "conv1d", "A_log", "norm", "embed"))
            assert name.endswith(".weight")


# ---- what a config.json says


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (FP8, ((128, 128), Selection())),
        (FP8 | {"weight_block_size": [64, 256]}, ((64, 256), Selection())),
        (FP8 | {"modules_to_not_convert": ["lm_head", 7, None, ""]}, ((128, 128), Selection(("lm_head",)))),
        (FP8 | {"modules_to_not_convert": "lm_head"}, ((128, 128), Selection())),
        (
            {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
            ((1, 32), Selection(experts="stacked")),
        ),
        *[(FP8 | {"weight_block_size": block}, None) for block in NO_BLOCKS],
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, None),
        ({"quant_method": ["fp8"]}, None),
        ({}, None),
        ("fp8", None),
        (None, None),
    ],
)
def test_a_scheme_is_read_from_a_config_json_only_if_it_is_complete(said: Any, expected: Any) -> None:
    document = QWEN | {"quantization_config": said}
    group = get_scales(None, document)
    assert (group and (group.packing.block, group.selection)) == expected
    assert pc.count(document).total == pc.count(QWEN).total
    assert pc.count(document).warnings == pc.count(QWEN).warnings
    assert pc.count(document).release == {}  # only a zoo entry states the contents of the files


@pytest.mark.parametrize(
    ("kept", "layers"),
    [
        ([], 4),
        (["lm_head", "model.embed_tokens"], 4),
        (["model.layers.1.self_attn.q_proj"], 3),
        (["model.layers.0", "model.layers.3.self_attn"], 2),
        (["q_proj"], 0),
        (["model.layers.*.self_attn"], 0),
        (["model.layers.*.self_attn.k_proj"], 4),
        ([f"model.layers.{i}.self_attn.q_proj" for i in range(4)], 0),
        (["model.layers.1"] * 2, 3),
        (["model.layers.1*"], 3),
        (["("], 4),
    ],
)
def test_modules_that_are_not_converted_have_no_scales(kept: list[str], layers: int) -> None:
    count = pc.count(QWEN)
    found = group_scales(count, get_group("fp8", tuple(kept))).get("model.layers.{layer}.self_attn.q_proj.weight")
    assert (found.copies if found else 0) == layers


def test_scales_list_the_converted_layers() -> None:
    group = get_group("fp8", ("model.layers.1.mlp", "model.layers.3"))
    found = group_scales(pc.count(QWEN), group)
    assert found["model.layers.{layer}.self_attn.q_proj.weight"].repeats[0].indices == (0, 1, 2)
    experts = found["model.layers.{layer}.mlp.experts.{expert}.up_proj.weight"]
    assert (experts.repeats[0].indices, experts.copies) == ((0, 2), 2 * 128)
