"""The format in which zoo entries were released, as their published config.json states it."""

from __future__ import annotations

import json

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from tests.running import Runner

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
