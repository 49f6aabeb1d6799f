"""Quantisation scales, from the declaration: block by block as the releases store them."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from paramcount.counting.quantisation.scales import get_scales, make_scales
from paramcount.flow import TensorRow
from paramcount.formats.quantization_config import PackedGroup, Selection

FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
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
