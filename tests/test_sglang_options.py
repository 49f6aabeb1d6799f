"""What SGLang's flags and transformers' arguments change; expected values are worked out from their sources."""

from __future__ import annotations

import pytest

import paramcount.api as pc
from paramcount.costs.engines.transformers.placement import Module, limit_gpus, place_modules
from paramcount.costs.fit import Fit

GIB = 2**30
LLAMA_TOKEN = 2 * 8 * 128 * 2 * 32  # bytes: keys and values, 8 heads of 128 values in BF16, 32 layers


def fit(model: str, **given: object) -> Fit:
    found = pc.memory(model, engine="sglang", **given).fit  # type: ignore[arg-type]
    assert found is not None
    return found


def count_kv(model: str, context: int, **options: int | float | bool | str) -> int:
    return pc.memory(model, engine="sglang", context=context, engine_options=options).kv_cache_bytes


@pytest.mark.parametrize(("backend", "page"), [("flashmla", 64), ("ascend", 128), ("trtllm_mha", 64), ("fa3", 1)])
def test_some_backends_force_a_page_size(backend: str, page: int) -> None:
    tokens = -(-1000 // page) * page + page
    assert count_kv("llama-3.1-8b", 1000, attention_backend=backend) == tokens * LLAMA_TOKEN


@pytest.mark.parametrize(("dtype", "bits_of_two"), [("fp8", 16), ("fp4", 9), ("mxfp8", 16.5)])
def test_caches_of_few_bits_keep_scales(dtype: str, bits_of_two: float) -> None:
    # Per value FP4 takes 4 bits and a 16th of a byte, MXFP8 8 bits and a 32nd of a byte.
    found = pc.memory("llama-3.1-8b", engine="sglang", context=999, kv_dtype=dtype).kv_cache_bytes
    assert found == 1000 * LLAMA_TOKEN // 2 * bits_of_two / 16


def test_windows_have_a_pool_of_their_own_in_some_models_only() -> None:
    token = 2 * 8 * 64 * 2 * 12  # gpt-oss-20b: 8 heads of 64 values, 12 layers with and 12 without a window
    assert count_kv("gpt-oss-20b", 10_000) == (10_001 + 8_001) * token
    assert count_kv("gpt-oss-20b", 10_000, swa_full_tokens_ratio=0.5) == (10_001 + 5_001) * token
    assert count_kv("gpt-oss-20b", 10_000, disable_hybrid_swa_memory=True) == 2 * 10_001 * token
    assert count_kv("gemma-3-1b", 10_000) == 10_001 * 2 * 1 * 256 * 2 * 26


def test_states_take_a_share_of_the_memory_by_the_ratio() -> None:
    found = pc.memory("qwen3-next-80b-a3b", engine="sglang", context=1 << 17)
    assert found.state_bytes == found.kv_cache_bytes * 9 // 10
    slots = pc.memory(
        "qwen3-next-80b-a3b", engine="sglang", context=1 << 17, engine_options={"max_mamba_cache_size": 9}
    )
    assert slots.state_bytes % 10 == 0
    assert slots.kv_cache_bytes == found.kv_cache_bytes


def test_the_share_is_what_the_reserve_leaves() -> None:
    # 512 MiB, 1.5 per token of 8,192, 1,024 for 8 GPUs, 2 per sequence of 512 and 1,536 of MLA: 16,384 of 143,771 MiB.
    given = {"memory": 143_771 * 2**20, "tp": 8, "context": 1024}
    default, explicit = (
        fit("deepseek-r1", **given, engine_options=options) for options in ({}, {"mem_fraction_static": 0.886})
    )
    assert default.overhead_bytes == explicit.overhead_bytes


def test_a_draft_of_the_model_is_loaded() -> None:
    given = {"memory": 141 * 10**9, "tp": 8, "context": 1024}
    without, drafted = (
        pc.memory("deepseek-r1", engine="sglang", **given, engine_options=options)  # type: ignore[arg-type]
        for options in ({}, {"speculative_algorithm": "NEXTN"})
    )
    assert without.fit is not None
    assert drafted.fit is not None
    added = drafted.fit.shares[0].weights_bytes - without.fit.shares[0].weights_bytes
    assert 2 * 11_610_067_968 // 8 <= added < 2 * 11_610_067_968 // 4  # MTP layers in BF16; norms and others are whole
    assert any("are not loaded" in note for note in without.notes)
    assert not any("are not loaded" in note for note in drafted.notes)


def test_offloaded_weights_lie_on_the_cpu() -> None:
    shares = fit("llama-3.1-8b", memory=24 * GIB, context=1024, engine_options={"cpu_offload_gb": 5}).shares
    whole = fit("llama-3.1-8b", memory=24 * GIB, context=1024).shares[0]
    assert [share.device for share in shares] == [0, None]
    assert [share.weights_bytes for share in shares] == [whole.weights_bytes - 5 * GIB, 5 * GIB]


MODULES = [Module("inputs", None, 3), *(Module("", i, 5) for i in range(4)), Module("output", None, 3)]


def test_the_first_gpu_keeps_room_for_the_largest_module() -> None:
    assert place_modules(MODULES, [18]).places == (0, 0, 0, None, None, None)
    assert place_modules(MODULES, [17]).places == (0, 0, None, None, None, None)


def test_the_room_shrinks_when_the_largest_modules_are_placed() -> None:
    assert place_modules(MODULES, [26]).places == (0, 0, 0, 0, 0, 0)
    assert place_modules(MODULES, [25]).places == (0, 0, 0, 0, None, None)


def test_gpus_are_filled_evenly_and_one_gpu_to_nine_tenths() -> None:
    assert limit_gpus(MODULES, 100, 1, [], balanced=True) == [90]
    assert limit_gpus(MODULES, 100, 2, [], balanced=True) == [26 // 2 + 5 * 5 // 4, 100]
    assert limit_gpus(MODULES, 100, 2, [], balanced=False) == [100, 100]
    assert limit_gpus(MODULES, 100, 1, [40], balanced=True) == [40]


def test_layers_on_the_cpu_have_their_cache_on_the_first_gpu() -> None:
    found = pc.memory("llama-3.1-8b", engine="transformers", memory=10 * GIB, context=4096,
                      engine_options={"device_map": "auto"}).fit  # fmt: skip
    assert found is not None
    gpu, cpu = found.shares
    assert (gpu.kv_cache_bytes, cpu.kv_cache_bytes) == (4096 * LLAMA_TOKEN, 0)
    assert gpu.weights_bytes + cpu.weights_bytes == 16_060_522_496
    assert gpu.layers + cpu.layers == 32


# EPMoE of 0.4.8.post1 and 0.4.9: w13_weight_fp8 refers to what AITER's shuffle_weight then copies.
@pytest.mark.parametrize(
    ("version", "backend", "ep"), [("v0.4.10", "aiter", 8), ("v0.4.9", "fa3", 8), ("v0.4.9", "aiter", 1)]
)
def test_two_versions_keep_experts_in_fp8_twice_on_amd_gpus(version: str, backend: str, ep: int) -> None:
    def count_weights(version: str, backend: str, ep: int) -> int:
        options = {"version": version, "attention_backend": backend}
        return fit("deepseek-r1", gpu="8xMI300X", tp=8, ep=ep, engine_options=options).shares[0].weights_bytes

    values = 58 * 32 * 3 * 7168 * 2048  # 58 layers, 32 of 256 experts on a GPU, a byte each
    scales = 58 * 32 * 3 * 56 * 16 * 4
    assert count_weights("v0.4.9", "aiter", 8) - count_weights(version, backend, ep) == values + scales


def test_attention_on_amd_gpus_has_a_workspace_beside_the_pools() -> None:
    # sgl-project/sglang/pull/18263: 51.75 GiB for Qwen3-30B-A3B, 3,261 requests of 262,144 tokens (one GPU, 288 GiB)
    options = {"attention_backend": "aiter", "max_running_requests": 3261}
    given: dict[str, object] = {"memory": 288 * GIB, "context": 262_144, "engine_options": options}
    workspace = dict(fit("qwen3-30b-a3b", **given).overhead_items)["attention workspace"]
    assert f"{workspace / GIB:.2f}" == "51.75"
    halved = dict(fit("qwen3-30b-a3b", **given, tp=2).overhead_items)["attention workspace"]
    assert halved == workspace // 2
    assert "attention workspace" not in dict(fit("deepseek-v2-lite", **given).overhead_items)  # MLA has none


def test_beyond_8192_tokens_amd_gpus_have_a_smaller_share_for_weights_and_pools() -> None:
    def count_reserve(context: int, backend: str, share: float) -> int:
        options = {"attention_backend": backend, "mem_fraction_static": share, "max_running_requests": 1}
        return fit("llama-3.1-8b", gpu="MI300X", context=context, engine_options=options).overhead_bytes

    # mem_fraction_static times 0.85, in arg_groups/attention_hook.py
    assert count_reserve(8193, "auto", 0.8) == count_reserve(8193, "fa3", 0.8 * 0.85)
    assert count_reserve(8192, "auto", 0.8) == count_reserve(8192, "fa3", 0.8)


# srt/server_args.py of 0.4.7; a GPU of more than 80 GB had the share of one
@pytest.mark.parametrize(
    ("gib", "n", "share"), [(80, 1, 0.88), (80, 2, 0.87), (80, 4, 0.85), (80, 8, 0.81), (94, 8, 0.88)]
)
def test_early_versions_choose_the_share_by_the_number_of_gpus(gib: int, n: int, share: float) -> None:
    def count_reserve(**options: float | str) -> int:
        return fit("llama-3.1-8b", memory=gib * GIB, tp=n, context=1024, engine_options=options).overhead_bytes

    assert count_reserve(version="v0.4.7") == count_reserve(version="v0.4.7", mem_fraction_static=share)
    assert count_reserve(version="v0.4.8") != count_reserve(version="v0.4.8", mem_fraction_static=share)
