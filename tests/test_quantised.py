"""Quantised checkpoints: what stands behind the packing, as the libraries that write it lay it out.

And whatever does not fit is named.
"""

from __future__ import annotations

import random
import re
from fractions import Fraction
from itertools import product
from math import ceil, prod
from pathlib import Path
from typing import Any

import pytest

from paramcount.checkpoints.checkpoint import Checkpoint, FileTensor
from paramcount.checkpoints.packed import quantised
from paramcount.checkpoints.packed.quantised import Unpacked, unpack
from paramcount.errors import ParamcountError
from paramcount.formats.tensor_entries import BITS
from paramcount.formats.weights import compute_bytes
from tests.headers import load_saved, make_checkpoint
from tests.refusing import assert_one_line

Layer = dict[str, tuple[str, tuple[int, ...]]]  # {what the name ends in: (type, shape)}
Q, K, UP, DOWN = "self_attn.q_proj", "self_attn.k_proj", "mlp.up_proj", "mlp.down_proj"
LINEARS = {Q: (256, 256), K: (64, 256), UP: (512, 256), DOWN: (256, 512)}  # [outputs, inputs]


def read_layer(text: str, prefix: str = "") -> Layer:
    """The tensors of a text such as "weight I8 8 4, weight_scale F32"."""
    words = (tensor.split() for tensor in text.split(","))
    return {prefix + name: (dtype, tuple(map(int, shape))) for name, dtype, *shape in words}


def state(method: str, group: int = 128, bits: int = 4, **more: Any) -> dict[str, Any]:
    """A quantization_config of GPTQ or AWQ."""
    return {"quant_method": method, "bits": bits, "group_size": group, **more}


def unpack_tensors(tensors: Layer, config: dict[str, Any] | None = None) -> Unpacked:
    return unpack(make_checkpoint(tensors, quantization_config=config))


def unpack_index(tensors: Layer, config: dict[str, Any] | None = None) -> Unpacked:
    held = {name: FileTensor("model.safetensors") for name in tensors}
    return unpack(Checkpoint(Path("model.safetensors.index.json"), "safetensors", held, (), quantization_config=config))


# ---- what the libraries write, each layout typed from its source


def gptq_layer(outputs: int, inputs: int, bits: int = 4, group: int = 128, index: bool = True) -> Layer:
    """github AutoGPTQ/AutoGPTQ, auto_gptq/nn_modules/qlinear/qlinear_cuda.py, QuantLinear.__init__."""
    groups = ceil(inputs / group) if group != -1 else 1
    zeros = f"qzeros I32 {groups} {outputs // 32 * bits}, scales F16 {groups} {outputs}"
    return read_layer(
        f"qweight I32 {inputs // 32 * bits} {outputs}, {zeros}" + (f", g_idx I32 {inputs}" if index else "")
    )


def awq_layer(outputs: int, inputs: int, bits: int = 4, group: int = 128) -> Layer:
    """github casper-hansen/AutoAWQ, awq/modules/linear/gemm.py, WQLinear_GEMM.__init__."""
    n, groups = outputs // (32 // bits), inputs // group
    return read_layer(f"qweight I32 {inputs} {n}, qzeros I32 {groups} {n}, scales F16 {groups} {outputs}")


def awq_zeros_width(inputs: int, group: int) -> int:
    """awq/modules/linear/gemv.py, calculate_zeros_width."""
    multiplier = {64: 2, 32: 4}.get(group, 1)
    return ceil(ceil(inputs // group / 8) / multiplier) * multiplier


def awq_gemv_layer(outputs: int, inputs: int, group: int = 128) -> Layer:
    """awq/modules/linear/gemv.py, WQLinear_GEMV.__init__."""
    n = awq_zeros_width(inputs, group)
    return read_layer(f"qweight I32 {outputs} {inputs // 8}, qzeros I32 {outputs} {n}, scales F16 {outputs} {n * 8}")


def awq_fast_layer(outputs: int, inputs: int, group: int = 128) -> Layer:
    """awq/modules/linear/gemv_fast.py, WQLinear.__init__: four rows interleaved, zero points multiplied by their
    scales.
    """
    n = awq_zeros_width(inputs, group) * 8
    return read_layer(f"qweight I16 {outputs // 4} {inputs}, scales F16 {n} {outputs}, scaled_zeros F16 {n} {outputs}")


def fp8_layer(
    outputs: int, inputs: int, block: tuple[int, int] | None = (128, 128), scale: str = "weight_scale_inv"
) -> Layer:
    """transformers 5.23, integrations/finegrained_fp8.py, FP8Linear.__init__."""
    scales = f"{ceil(outputs / block[0])} {ceil(inputs / block[1])}" if block else ""
    return read_layer(f"weight F8_E4M3 {outputs} {inputs}, {scale} F32 {scales}")


def nvfp4_layer(outputs: int, inputs: int) -> Layer:
    """github NVIDIA/TensorRT-Model-Optimizer, modelopt/torch/export/quant_utils.py: names of ModelOpt."""
    weights = f"weight U8 {outputs} {inputs // 2}, weight_scale F8_E4M3 {outputs} {inputs // 16}"
    return read_layer(f"{weights}, weight_scale_2 F32, input_scale F32")


def nvfp4_packed_layer(outputs: int, inputs: int) -> Layer:
    """compressed-tensors 0.20, compressors/nvfp4/base.py, compression_param_names."""
    weights = f"weight_packed U8 {outputs} {inputs // 2}, weight_scale F8_E4M3 {outputs} {inputs // 16}"
    return read_layer(f"{weights}, weight_global_scale F32 1, input_global_scale F32 1")


def mxfp4_packed_layer(outputs: int, inputs: int) -> Layer:
    """compressed-tensors 0.20, compressors/mxfp4/base.py."""
    return read_layer(f"weight_packed U8 {outputs} {inputs // 2}, weight_scale U8 {outputs} {inputs // 32}")


def make_compressed(form: str, group: int, kind: str = "float") -> dict[str, Any]:
    weights = {"num_bits": 4, "type": kind, "group_size": group, "symmetric": True}
    groups = {"group_0": {"targets": ["Linear"], "weights": weights}}
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": groups}


def make_model(make: Any, n: int = 2, linears: dict[str, tuple[int, int]] = LINEARS, **options: Any) -> Layer:
    """A small model: an unpacked embedding and norms, and packed linear layers."""
    tensors: Layer = {"model.embed_tokens.weight": ("F16", (320, 256)), "model.norm.weight": ("F16", (256,))}
    for i, (name, shape) in product(range(n), linears.items()):
        tensors |= {f"model.layers.{i}.{name}.{end}": held for end, held in make(*shape, **options).items()}
    return tensors


def list_shapes(found: Unpacked) -> dict[str, tuple[int, ...] | None]:
    return {name: logical.shape for name, logical in found.tensors.items()}


PLAIN: dict[str, tuple[int, ...]] = {
    f"model.layers.{i}.{name}.weight": shape for i in range(2) for name, shape in LINEARS.items()
}
PLAIN |= {"model.embed_tokens.weight": (320, 256), "model.norm.weight": (256,)}
VALUES = 2 * (256 * 256 + 64 * 256 + 2 * 512 * 256) + 320 * 256 + 256

WRITERS: list[tuple[Any, dict[str, Any], dict[str, Any] | None, str]] = [
    *(
        (gptq_layer, {"bits": bits, "group": group}, config, f"GPTQ, {bits} bits, groups of {group}")
        for bits in (2, 3, 4, 8)
        for group, config in ((128, state("gptq", bits=bits)), (32, None))
    ),
    (gptq_layer, {"group": -1}, state("gptq", -1, desc_act=True), "GPTQ, 4 bits, one group"),
    (gptq_layer, {"group": -1}, None, "GPTQ, 4 bits, one group"),
    (gptq_layer, {"index": False}, state("gptq", checkpoint_format="gptq_v2"), "GPTQ, 4 bits, groups of 128"),
    (gptq_layer, {}, state("auto-round", packing_format="auto_round:auto_gptq"), "GPTQ, 4 bits, groups of 128"),
    (awq_layer, {}, state("awq", version="gemm", zero_point=True), "AWQ, 4 bits, groups of 128"),
    (
        awq_layer,
        {"group": 64},
        {"quant_method": "awq", "w_bit": 4, "q_group_size": 64, "version": "GEMM"},
        "AWQ, 4 bits, groups of 64",
    ),
    (awq_layer, {}, None, "AWQ, 4 bits, groups of 128"),
    (awq_layer, {"bits": 8}, None, "AWQ, 8 bits, groups of 128"),
    *(
        (make, {"group": group}, state("awq", group, version=version), f"AWQ, 4 bits, groups of {group}")
        for make, version, groups in ((awq_gemv_layer, "gemv", (128, 64, 32)), (awq_fast_layer, "gemv_fast", (128, 64)))
        for group in groups
    ),
    *(
        (fp8_layer, {"block": block}, {"quant_method": "fp8", "weight_block_size": [*block]}, scheme)
        for block in ((128, 128), (64, 32), (96, 96))
        for scheme in (f"FP8 in blocks of {block[0]} × {block[1]}",)
    ),
    (fp8_layer, {}, None, "FP8 in blocks of 128 × 128"),
    (
        fp8_layer,
        {"block": None},
        {"quant_method": "fp8", "weight_block_size": None, "activation_scheme": "static"},
        "FP8, one scale per tensor",
    ),
    (
        fp8_layer,
        {"block": (1, 10**6), "scale": "weight_scale"},
        {"quant_method": "fbgemm_fp8"},
        "FP8, one scale per output",
    ),
    (nvfp4_layer, {}, {"quant_method": "modelopt", "quant_algo": "NVFP4"}, "NVFP4"),
    (nvfp4_layer, {}, None, "NVFP4"),
    (nvfp4_packed_layer, {}, make_compressed("nvfp4-pack-quantized", 16), "NVFP4"),
    (nvfp4_packed_layer, {}, None, "NVFP4"),
    (mxfp4_packed_layer, {}, make_compressed("mxfp4-pack-quantized", 32), "FP4 in groups of 32"),
]


@pytest.mark.parametrize(("make", "options", "config", "scheme"), WRITERS)
def test_what_a_library_writes_is_read_as_its_original_model(make: Any, options: Any, config: Any, scheme: str) -> None:
    tensors = make_model(make, **options)
    found = unpack_tensors(tensors, config)
    assert found.scheme == scheme
    assert list_shapes(found) == PLAIN
    assert found.faults == ()
    held = {part for name, logical in found.tensors.items() for part in logical.list_file_names(name)}
    assert held == set(tensors)
    assert set(found.auxiliary) == held - {logical.list_file_names(name)[0] for name, logical in found.tensors.items()}
    sizes = {name: prod(shape) * BITS[dtype] // 8 for name, (dtype, shape) in tensors.items()}
    assert found.totals[:3] == (VALUES, sum(prod(shape) for _, shape in tensors.values()), sum(sizes.values()))
    assert found.totals.bits == Fraction(8 * sum(sizes.values()), VALUES)
    for name, logical in found.tensors.items():
        assert logical.shape is not None
        assert logical.compute_size(logical.shape) == sum(sizes[part] for part in logical.list_file_names(name))


@pytest.mark.parametrize("inputs", [160, 288, 1056])
def test_an_incomplete_last_group_counts(inputs: int) -> None:
    for config in (None, {"quant_method": "gptq", "bits": 4, "group_size": 128}):
        found = unpack_tensors(make_model(gptq_layer, linears=LINEARS | {DOWN: (256, inputs)}), config)
        assert (found.scheme, found.faults) == ("GPTQ, 4 bits, groups of 128", ())
        assert found.tensors[f"model.layers.0.{DOWN}.weight"].shape == (256, inputs)


def test_two_bit_widths_are_reported_if_the_config_allows_them() -> None:
    tensors = make_model(gptq_layer) | {
        f"model.layers.0.{UP}.{end}": held for end, held in gptq_layer(512, 256, bits=8).items()
    }
    config = {"quant_method": "gptq", "bits": 4, "group_size": 128}
    found = unpack_tensors(tensors, config | {"dynamic": {r"+:model\.layers\.0\..*up.*": {"bits": 8}}})
    assert (found.scheme, found.faults, list_shapes(found)) == ("GPTQ, 4 and 8 bits, groups of 128", (), PLAIN)
    assert unpack_tensors(tensors, config).faults == (
        f"model.layers.0.{UP}.qweight: has 8 bits per value, but the config says 4",
    )


def test_only_matrices_are_packed() -> None:
    """A bias has the type of the scales: QuantLinear gives both weight_dtype."""
    assert unpack_tensors(make_model(gptq_layer)).tensors[f"model.layers.0.{Q}.weight"].compute_size((256,)) == 2 * 256


# ---- FP8, FP4 and MXFP4


def test_mxfp4_is_unpacked_in_the_model_s_orientation() -> None:
    """transformers 5.23, integrations/mxfp4.py, _convert_moe_packed_tensors: [E, out, G, 16] become [E, out, 32 G] and
    are turned.
    """
    held = read_layer("gate_up_proj_blocks U8 4 200 2 16, gate_up_proj_scales U8 4 200 2, gate_up_proj_bias BF16 4 200")
    found = unpack_tensors({f"experts.{name}": tensor for name, tensor in held.items()})
    assert list_shapes(found) == {"experts.gate_up_proj": (4, 64, 200), "experts.gate_up_proj_bias": (4, 200)}
    assert found.auxiliary == {"experts.gate_up_proj_scales": "scale"}
    assert found.tensors["experts.gate_up_proj"].compute_size((4, 64, 200)) == 4 * 64 * 200 // 2 + 4 * 200 * 2


def test_mxfp4_of_the_first_gpt_oss_release_is_not_transposed() -> None:
    """github openai/gpt-oss, gpt_oss/torch/weights.py: mlp1_weight.blocks and .scales, of a parameter [E, 2 · d_ff,
    d_model].
    """
    found = unpack_tensors(read_layer("blocks U8 4 192 2 16, scales U8 4 192 2", "block.0.mlp.mlp1_weight."))
    assert list_shapes(found) == {"block.0.mlp.mlp1_weight": (4, 192, 64)}


def test_experts_of_deepseek_v4_have_two_values_per_byte() -> None:
    """transformers 5.23, integrations/finegrained_fp8.py, _alloc_expert_proj and FP8Experts: int8, a scale of 32
    inputs, named `scale`.
    """
    tensors = read_layer("a.weight F8_E4M3 256 128, a.scale F8_E8M0 2 1, norm.weight BF16 128")
    found = unpack_tensors(read_layer("weight I8 256 64, scale F8_E8M0 256 4", "e.w1.") | tensors)
    assert list_shapes(found) == {"e.w1.weight": (256, 128), "a.weight": (256, 128), "norm.weight": (128,)}
    assert (found.scheme, found.faults) == ("FP8 in blocks of 128 × 128 and FP4 in groups of 32", ())
    assert found.tensors["e.w1.weight"].format == "FP4"
    assert found.tensors["e.w1.weight"].compute_size((256, 128)) == 256 * 64 + 256 * 4


@pytest.mark.parametrize("scales", [(), (1,), (512, 1), (512,)])
def test_scales_per_tensor_and_per_output_may_lack_axes(scales: tuple[int, ...]) -> None:
    groups = {"group_0": {"weights": {"type": "float", "num_bits": 8}}}
    config = {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": groups}
    tensors = read_layer("a.weight F8_E4M3 512 384, a.input_scale BF16 1, b.k_scale BF16, a.output_scale F32")
    found = unpack_tensors(tensors | {"a.weight_scale": ("BF16", scales)}, config)
    assert list_shapes(found) == {"a.weight": (512, 384)}
    assert found.faults == ()
    assert found.auxiliary == {"a.weight_scale": "scale"} | dict.fromkeys(
        ("a.input_scale", "b.k_scale", "a.output_scale"), "activation scale"
    )
    assert found.tensors["a.weight"].compute_size((512, 384)) == 512 * 384 + 2 * prod(scales) + 2 + 4


# ---- what is not quantised, and what only an index names


@pytest.mark.parametrize(
    "text",
    [
        "mixer.A_log F32 16, mixer.scales F32 16, mixer.weight BF16 16 4",
        "norm.weight BF16 64, norm.scale BF16 64, norm.weight_scale F32 1",
        "vision.blocks.0.weight BF16 8 8, vision.blocks BF16 8 8, vision.scales BF16 8",
        "a.codes I32 8 8, a.indices I64 8, a.B F32 4 4, a.s F32 4",
        "cast.weight F8_E4M3 64 64, cast.bias F8_E5M2 64",
        "m.up_weight F8_E4M3 64 64, m.up_scale F32",
        "q.qweight BF16 64 64, q.scales BF16 1 64",
        "tokens.table U8 64 64, counts.weight I8 64 64",
    ],
)
def test_a_tensor_named_like_a_scale_does_not_make_a_model_quantised(text: str) -> None:
    tensors = read_layer(text)
    found = unpack_tensors(tensors)
    assert (found.scheme, found.auxiliary, found.faults) == (None, {}, ())
    assert {name: (logical.format, logical.shape) for name, logical in found.tensors.items()} == tensors


NAMED = [
    (gptq_layer, None, "GPTQ"),
    (awq_layer, None, "GPTQ or AWQ"),
    (awq_layer, {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"}, "AWQ, 4 bits, groups of 128"),
    (awq_fast_layer, {"quant_method": "awq", "bits": 4, "group_size": -1, "version": "gemv_fast"}, "AWQ, 4 bits"),
    (fp8_layer, None, "FP8"),
    (nvfp4_layer, None, "NVFP4"),
    (nvfp4_packed_layer, None, "NVFP4"),
    (mxfp4_packed_layer, make_compressed("mxfp4-pack-quantized", 32), "MXFP4"),
]


@pytest.mark.parametrize(("make", "config", "scheme"), NAMED)
def test_scales_are_recognised_by_name_alone(make: Any, config: dict[str, Any] | None, scheme: str) -> None:
    tensors = make_model(make)
    found, whole = unpack_index(tensors, config), unpack_tensors(tensors, config)
    assert found.scheme == scheme
    assert list(found.tensors) == list(whole.tensors)
    assert found.auxiliary == whole.auxiliary
    assert set(list_shapes(found).values()) == {None}
    assert found.totals == (None, None, None, None)
    assert found.faults == ()


def test_a_name_that_several_schemes_use_is_not_enough_for_a_scale() -> None:
    tensors = make_model(fp8_layer, scale="weight_scale")
    assert (unpack_index(tensors).scheme, unpack_index(tensors).auxiliary) == (None, {})
    assert unpack_index(tensors, {"quant_method": "fbgemm_fp8"}).auxiliary == dict.fromkeys(
        (name for name in tensors if name.endswith("_scale")), "scale"
    )


def test_tensors_in_a_missing_shard_have_no_shape() -> None:
    held = dict(make_checkpoint(make_model(gptq_layer)).tensors)
    held[f"model.layers.0.{Q}.scales"] = FileTensor("model-00002-of-00002.safetensors")
    found = unpack(Checkpoint(Path("model.safetensors.index.json"), "safetensors", held, ()))
    assert list_shapes(found) == PLAIN | {f"model.layers.0.{Q}.weight": None}
    assert found.tensors[f"model.layers.0.{Q}.weight"].compute_size((256, 256)) is None


# ---- damages

GPTQ, FP8 = state("gptq"), {"quant_method": "fp8", "weight_block_size": [128, 128]}
AT = f"model.layers.1.{DOWN}."
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
PACKINGS: dict[Any, tuple[dict[str, Any], str]] = {
    gptq_layer: (GPTQ, "GPTQ 4-bit with groups of 128"),
    awq_layer: ({}, "AWQ 4-bit with groups of 128"),
    fp8_layer: (FP8, "F8_E4M3 with blocks of 128 × 128"),
    nvfp4_layer: (NVFP4, "NVFP4 with blocks of 1 × 16"),
}
WRONG_SHAPES: list[tuple[Any, str, list[int], list[int]]] = [  # what is found, and what is expected
    (gptq_layer, "qweight I32", [32, 512], [64, 256]),
    (gptq_layer, "qweight I32", [256, 64], [64, 256]),
    (gptq_layer, "scales F16", [256, 4], [4, 256]),
    (gptq_layer, "scales F16", [2, 512], [4, 256]),
    (gptq_layer, "qzeros I32", [32, 4], [4, 32]),
    (gptq_layer, "qzeros I32", [], [4, 32]),
    (gptq_layer, "g_idx I32", [256], [512]),
    (awq_layer, "qweight I32", [256, 64], [512, 32]),
    (awq_layer, "qzeros I32", [4, 64], [4, 32]),
    (fp8_layer, "weight_scale_inv F32", [4, 2], [2, 4]),
    (fp8_layer, "weight_scale_inv F32", [], [2, 4]),
    (fp8_layer, "weight_scale_inv F32", [2], [2, 4]),
    (nvfp4_layer, "weight_scale F8_E4M3", [256, 16], [256, 32]),
]
LOST, LACKING = "packed weights are missing", "scales are missing"
DAMAGES: list[tuple[Any, dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    *(
        (make, config, {name: (dtype, tuple(found))}, (f"{name}: shape {found}, expected {expected} {where}",))
        for make, piece, found, expected in WRONG_SHAPES
        for (name, dtype), (config, packing) in ((piece.split(), PACKINGS[make]),)
        for where in (f"for a [256, 512] tensor in {packing}",)
    ),
    (gptq_layer, GPTQ, {"scales": None}, (f"qweight: {LACKING}",)),
    (gptq_layer, GPTQ, {"qzeros": None}, ("qweight: zero points are missing",)),
    (gptq_layer, GPTQ, {"qweight": None}, tuple(f"{end}: {LOST}" for end in ("qzeros", "scales", "g_idx"))),
    (fp8_layer, FP8, {"weight_scale_inv": None}, (f"weight: {LACKING}",)),
    (fp8_layer, FP8, {"weight": None}, (f"weight_scale_inv: {LOST}",)),
    (fp8_layer, FP8, {"weight": ("BF16", (256, 512))}, (f"weight_scale_inv: {LOST}",)),
    (fp8_layer, FP8, {"weight_scale_inv": ("I64", (2, 4))}, (f"weight: {LACKING}", f"weight_scale_inv: {LOST}")),
    (nvfp4_layer, NVFP4, {"weight_scale_2": ("F32", (256,))}, ("weight_scale_2: shape [256], expected [] or [1]",)),
    (nvfp4_layer, NVFP4, {"weight": None}, (f"weight_scale: {LOST}", f"weight_scale_2: {LOST}")),
    (nvfp4_packed_layer, NVFP4, {"weight_global_scale": None}, ("weight_packed: the scale of the tensor is missing",)),
]


@pytest.mark.parametrize(("make", "config", "damage", "faults"), DAMAGES)
@pytest.mark.parametrize("told", [True, False])
def test_every_kind_of_damage_is_reported(
    make: Any, config: Any, damage: Any, faults: tuple[str, ...], told: bool
) -> None:
    tensors = {
        name: held for name, held in make_model(make).items() if damage.get(name.removeprefix(AT), held) is not None
    }
    tensors |= {f"{AT}{end}": held for end, held in damage.items() if held}
    found = unpack_tensors(tensors, (config or None) if told else None)
    assert found.faults == tuple(AT + fault for fault in faults)
    assert {
        part for name, logical in found.tensors.items() for part in logical.list_file_names(name)
    } | found.auxiliary.keys() == tensors.keys()
    gone = "qweight" in damage and damage["qweight"] is None
    gone |= "weight" in damage and damage["weight"] is None
    assert (f"{AT}weight" in found.tensors) == (not gone)
    if f"{AT}weight" in found.tensors:
        assert found.tensors[f"{AT}weight"].shape == (256, 512)


def test_the_same_damage_in_many_layers_is_one_line() -> None:
    tensors = {
        name: held
        for name, held in make_model(gptq_layer, n=40).items()
        if not name.endswith(f"{UP}.scales") or ".7." in name
    }
    assert unpack_tensors(tensors, GPTQ).faults == (f"model.layers.{{0-6,8-39}}.{UP}.qweight: scales are missing",)


def test_two_packed_tensors_with_one_name_are_both_listed() -> None:
    tensors: Layer = {
        f"w{dot}{end}": ("U8", shape)
        for dot in "_."
        for end, shape in (("blocks", (2, 64, 2, 16)), ("scales", (2, 64, 2)))
    }
    found = unpack_tensors(tensors)
    assert list_shapes(found) == {"w": (2, 64, 64), "w.blocks": (2, 64, 64)}
    assert found.faults == ("w.blocks: conflicts with w, which has the same name",)


def test_a_tensor_next_to_its_packed_version_is_a_conflict() -> None:
    found = unpack_tensors(make_model(gptq_layer) | {f"{AT}weight": ("F16", (256, 512))}, GPTQ)
    assert found.faults == (f"{AT}qweight: conflicts with {AT}weight, which has the same name",)
    assert found.tensors[f"{AT}weight"].format == "F16"
    assert found.tensors[f"{AT}qweight"].shape == (256, 512)


@pytest.mark.parametrize(
    ("tensors", "fault"),
    [
        (
            {"e.w_blocks": ("U8", (2, 64, 2, 8)), "e.w_scales": ("U8", (2, 64, 2))},
            "e.w_blocks: shape [2, 64, 2, 8], expected [2, 64, 2, 16] "
            "for a [2, 64, 64] tensor in MXFP4 with blocks of 1 × 32",
        ),
        (
            {"e.w_blocks": ("U8", (2, 64, 2, 16)), "e.w_scales": ("U8", (64, 2, 2))},
            "e.w_scales: shape [64, 2, 2], expected [2, 64, 2] for a [2, 64, 64] tensor in MXFP4 with blocks of 1 × 32",
        ),
        (
            {"e.w_blocks": ("U8", (2,)), "e.w_scales": ("U8", ())},
            "e.w_blocks: shape [2] does not contain blocks of 16 bytes",
        ),
    ],
)
def test_mxfp4_with_wrong_shapes_is_reported(tensors: Layer, fault: str) -> None:
    assert unpack_tensors(tensors).faults == (fault,)


@pytest.mark.parametrize("dropped", ["_scales", "_blocks"])
def test_blocks_or_scales_of_mxfp4_alone_are_reported(dropped: str) -> None:
    name, held = "model.layers.0.mlp.experts.down_proj", dict(load_saved("gpt_oss-MXFP4").tensors)
    del held[name + dropped]
    fault = (
        f"{name}_blocks: scales are missing" if dropped == "_scales" else f"{name}_scales: packed weights are missing"
    )
    assert unpack_tensors(held, {"quant_method": "mxfp4"}).faults == (fault,)


CONTRADICTIONS = [
    (make_model(gptq_layer), GPTQ | {"bits": 8}, "has 4 bits per value, but the config says 8"),
    (make_model(gptq_layer), GPTQ | {"group_size": 64}, "has groups of 128, but the config says 64"),
    (make_model(gptq_layer), GPTQ | {"group_size": -1}, "has groups of 128, but the config says one group"),
    (make_model(awq_layer), GPTQ, "is packed with AWQ, but the config says GPTQ"),
    (make_model(gptq_layer), GPTQ | {"quant_method": "awq"}, "is packed with GPTQ, but the config says AWQ"),
    (
        make_model(fp8_layer, block=(64, 64)),
        FP8,
        "has one scale per 64 × 64 block, but the config says one per 128 × 128 block",
    ),
    (
        make_model(fp8_layer),
        {"quant_method": "mxfp8"},
        "has one scale per 128 × 128 block, but the config says one per 1 × 32 block",
    ),
    (make_model(fp8_layer, block=None), FP8, "has one scale per tensor, but the config says one per 128 × 128 block"),
]


@pytest.mark.parametrize(("tensors", "config", "fault"), CONTRADICTIONS)
def test_a_packing_that_contradicts_the_config_is_a_fault(tensors: Layer, config: dict[str, Any], fault: str) -> None:
    found = unpack_tensors(tensors, config)
    assert found.faults
    assert {line.partition(": ")[2] for line in found.faults} == {fault}
    assert f"model.layers.{{0-1}}.{DOWN}.{'weight' if 'scale' in fault else 'qweight'}: {fault}" in found.faults
    assert list_shapes(found) == PLAIN


@pytest.mark.parametrize(
    ("config", "name"),
    [(GPTQ, "GPTQ"), (FP8, "FP8"), ({"quant_method": "mxfp4"}, "MXFP4"), (NVFP4, "NVFP4 by ModelOpt")],
)
def test_a_file_without_the_packing_in_its_config_is_a_fault(config: dict[str, Any], name: str) -> None:
    assert unpack_tensors({"w.weight": ("BF16", (8, 8))}, config).faults == (
        f"the config says {name}, but no tensor is packed that way",
    )


# ---- schemes that are not read

EXPECTED = "expected AWQ, FP8, GGUF, GPTQ, MXFP4, NVFP4, or not quantised"


def describe(scheme: str) -> str:
    """What the error says about a scheme of which only the bytes are known."""
    planned = scheme in ("bitsandbytes", "MLX")
    return f"; {scheme} weights can be planned, but not verified or run " if planned else " "


# The methods of transformers 5.23, quantizers/auto.py, AUTO_QUANTIZATION_CONFIG_MAPPING, that are not read, and others.
NAMES = {
    "aqlm": "AQLM", "vptq": "VPTQ", "quanto": "quanto", "eetq": "EETQ", "higgs": "HIGGS", "hqq": "HQQ",
    "torchao": "torchao", "bitnet": "BitNet", "spqr": "SpQR", "quark": "Quark", "fp_quant": "FP-Quant",
    "nvfp4": "NVFP4 of transformers", "metal": "MLX", "fouroversix": "Four Over Six", "sinq": "SINQ",
    "gemma": "Gemma's own", "exl2": "EXL2", "exl3": "EXL3", "modelopt_fp4": "ModelOpt", "a\x1b[31m": "'a\\x1b[31m'",
    "gguf": "'gguf'", "bitsandbytes_4bit": "bitsandbytes", "bitsandbytes_8bit": "bitsandbytes",
    "": "''", 7: "'7'",
}  # fmt: skip
CONFIGS = [
    ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "bitsandbytes"),
    ({"load_in_8bit": True}, "bitsandbytes"),
    (make_compressed("pack-quantized", 128, "int"), "compressed-tensors"),
    (make_compressed("nvfp4-pack-quantized", 64), "compressed-tensors"),
    ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, "GPTQ in the 'marlin' layout"),
    ({"quant_method": "gptq", "bits": 4, "is_marlin_format": True}, "GPTQ in the Marlin layout"),
    ({"quant_method": "awq", "version": "marlin"}, "AWQ in the 'marlin' layout"),
    ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, "ModelOpt"),
    ({"quant_method": "auto-round", "packing_format": "auto_round:fp8"}, "AutoRound"),
    *(({"quant_method": method}, name) for method, name in NAMES.items()),
]


@pytest.mark.parametrize(("config", "name"), CONFIGS)
def test_an_unsupported_scheme_in_the_config_is_rejected_by_name(config: dict[str, Any], name: str) -> None:
    with pytest.raises(ParamcountError) as caught:
        unpack_tensors({"w.weight": ("BF16", (8, 8))}, config)
    assert_one_line(str(caught.value))
    message = f"model.safetensors uses an unsupported quantisation scheme: {name}{describe(name)[:-1]}"
    assert str(caught.value) == f"{message} ({EXPECTED})"


INTEGERS = "integers with scales (compressed-tensors, Quark or BitNet)"
MARKED = [
    (scheme, read_layer(text, "q."))
    for scheme, text in (
        (
            "bitsandbytes",
            "weight U8 32768 1, weight.absmax F32 1024, weight.quant_map F32 16, "
            "weight.quant_state.bitsandbytes__nf4 U8 80",
        ),
        ("bitsandbytes", "weight I8 256 256, SCB F32 256, weight_format U8"),
        ("compressed-tensors", "weight_packed I32 256 32, weight_scale BF16 256 2, weight_shape I64 2"),
        ("AQLM", "codes I16 256 32 1, codebooks F16 1 65536 1 8, scales F16 256 1 1 1"),
        ("HQQ or SINQ", "W_q U8 128 256, meta U8 64"),
        ("quanto", "weight._data I8 256 256, weight._scale F32 256 1"),
        ("torchao", "_weight_qdata I8 256 256, _weight_scale F32 256 1"),
        ("EETQ", "weight I8 256 256, weight_scales F16 256"),
        ("VPTQ", "centroids.weight F16 1 65536, indices I32 1 32 128"),
        ("SpQR", "dense_weights I64 2048, row_offsets I32 257, col_vals I32 9"),
        ("HIGGS", "weight I16 64 256, scales F16 256 1, tables F16 16, tables2 F16 16 16 2"),
        ("FP-Quant", "qweight U8 256 128, scales U8 256 8, forward_hadamard_matrix F16 32 32"),
        ("EXL2", "q_weight I32 32 256, q_scale I32 2 32, q_groups I16 4"),
        ("EXL3", "trellis I16 16 16 64, suh F16 256, svh F16 256"),
        ("QuIP#", "Qidxs I64 256 32, SU F16 256, SV F16 256"),
        ("MLX", "weight U32 256 32, scales BF16 256 4, biases BF16 256 4"),
        ("GPTQ in Marlin's layout", "B I32 16 512, s F16 2 256"),
        ("QQQ", "B I32 16 512, s_channel F32 1 256, s_group F16 2 256"),
        ("Gemma's own", "embedding_quantized U8 256 128, embedding_scale F32 256 1"),
        (INTEGERS, "weight I8 256 256, weight_scale F32 256 1"),
        (INTEGERS, "weight U8 64 256, weight_scale BF16 1"),
    )
]


@pytest.mark.parametrize(("scheme", "tensors"), MARKED)
def test_an_unsupported_scheme_is_recognised_by_its_tensors(scheme: str, tensors: Layer) -> None:
    """The tensors of each scheme are from transformers 5.23, integrations/*.py, and from its own library."""
    for prefix in ("", "model.layers.3.self_attn."):
        with pytest.raises(ParamcountError) as caught:
            unpack_tensors(
                {f"{prefix}{name}": held for name, held in tensors.items()} | {"model.norm.weight": ("BF16", (256,))}
            )
        assert_one_line(str(caught.value))
        assert str(caught.value).startswith(f"model.safetensors: tensor {prefix}q.")
        assert f" uses an unsupported quantisation scheme: {scheme}{describe(scheme)}({EXPECTED})" in str(caught.value)
    if scheme in ("EETQ", "VPTQ", "GPTQ in Marlin's layout", INTEGERS):  # whose names others use, too
        assert unpack_index(tensors).scheme is None
    else:
        with pytest.raises(ParamcountError, match=f"scheme: {re.escape(scheme)}"):
            unpack_index(tensors)


@pytest.mark.parametrize(("scheme", "tensors"), MARKED)
def test_some_of_a_scheme_s_tensors_are_not_enough(scheme: str, tensors: Layer) -> None:
    for name, held in tensors.items():
        if not name.endswith(("W_q", "_weight_qdata", "Qidxs", "embedding_quantized", "forward_hadamard_matrix")):
            assert len(unpack_tensors({name: held}).tensors) == 1


# ---- hostile

ENDS = (
    "weight", "qweight", "qzeros", "scales", "scaled_zeros", "g_idx", "weight_scale_inv", "weight_scale", "scale",
    "w_blocks", "w_scales", "input_scale", "bias",
)  # fmt: skip
WIDTHS = (0, 1, 2, 3, 7, 8, 16, 32, 64, 100, 128, 256, 2**40, 2**62)


def test_random_shapes_never_raise() -> None:
    draw = random.Random(6)  # noqa: S311
    wrong: list[dict[str, Any]] = [{"bits": "4", "group_size": None}, {"bits": -1, "group_size": 2**70, "dynamic": []}]
    configs = [None, GPTQ, FP8, state("awq"), {"quant_method": "mxfp4"}, *(GPTQ | fields for fields in wrong)]
    configs.append({"quant_method": "fp8", "weight_block_size": [0, "x"]})
    for _ in range(4000):
        tensors: Layer = {}
        for i, end in product(range(2), draw.sample(ENDS, draw.randrange(1, 7))):
            shape = tuple(draw.choice(WIDTHS) for _ in range(draw.choice((0, 1, 2, 2, 2, 3, 4))))
            tensors[f"m.{i}.{end}"] = (
                draw.choice(("I32", "I32", "F16", "F32", "U8", "F8_E4M3", "F8_E8M0", "I8", "I16", "F4")),
                shape,
            )
        try:
            found = unpack_tensors(tensors, draw.choice(configs))
        except ParamcountError as error:
            assert_one_line(str(error))
            continue
        for line in found.faults:
            assert_one_line(line)
        assert {
            part for name, logical in found.tensors.items() for part in logical.list_file_names(name)
        } | found.auxiliary.keys() == tensors.keys()
        for logical in found.tensors.values():
            assert (logical.compute_size((64, 64)) or 0) >= 0
            if logical.shape is not None and logical.packing is not None:
                assert compute_bytes(logical.shape, logical.packing) >= 0


def test_any_number_of_faults_is_at_most_a_hundred_lines() -> None:
    tensors: Layer = {f"m.{i}.qweight": ("I32", (i + 1, 7)) for i in range(300)}
    tensors |= {f"m.{i}.{end}": ("F16", (i + 2, 9)) for i in range(300) for end in ("scales", "qzeros")}
    faults = unpack_tensors(tensors).faults
    assert len(faults) == 101
    assert faults[0] == "m.0.scales: shape [2, 9], expected [1, 7] for a [7, 8] tensor in GPTQ 4-bit with groups of 128"
    assert faults[-1] == "and 500 more tensors with problems"


def test_more_shapes_than_any_model_has_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantised, "MOST_SHAPES", 3)
    tensors: Layer = {f"m.{i}.qweight": ("I32", (i + 1, 8)) for i in range(4)}
    assert len(unpack_tensors(dict(list(tensors.items())[:3])).tensors) == 3
    with pytest.raises(ParamcountError, match=r"^model.safetensors: packed tensors have more than 3 shapes"):
        unpack_tensors(tensors)


def test_escapes_in_a_name_are_not_printed() -> None:
    (fault,) = unpack_tensors({"a\x1b[31m.g_idx": ("I32", (8,))}).faults
    assert fault == "a\\x1b[31m.g_idx: packed weights are missing"
