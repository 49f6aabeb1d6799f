"""llama.cpp and Ollama: what lies on each device, the two contexts, and how ggml gives tensors their memory."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from paramcount.costs.engines.llama_cpp.placement import place_layers
from paramcount.costs.fit import Fit

PADDING = 2**20  # more than what GPUs add to rows that are no multiple of 512 values


def measure(model: str, **arguments: Any) -> Fit:
    fit = pc.memory(model, **{"engine": "llama.cpp", "dtype": "q4_k_m", "gpu": "2xRTX 3090", **arguments}).fit
    assert fit is not None
    return fit


@pytest.mark.parametrize(
    ("number", "splits", "is_last", "layers", "output"),
    [
        (-1, (1, 1), False, (0, 0, 0, 1), 1),  # 5 with the LM head: 0, 1/5 and 2/5 are below a half
        (99, (3, 1), False, (0, 0, 0, 0), 1),
        (0, (1, 1), False, (None,) * 4, None),
        (1, (1,), False, (None,) * 4, 0),  # https://github.com/ggml-org/llama.cpp/pull/18148: the LM head first
        (1, (1,), True, (None, None, None, 0), None),  # and last before it
        (5, (1,), True, (0, 0, 0, 0), 0),
    ],
)
def test_the_last_layers_are_on_gpus(
    number: int, splits: tuple[float, ...], is_last: bool, layers: tuple[int | None, ...], output: int | None
) -> None:
    placement = place_layers(4, number, splits, output_last=is_last)
    assert (placement.layers, placement.output) == (layers, output)


@pytest.mark.parametrize("options", [{}, {"n_gpu_layers": 20}, {"n_cpu_moe": 30}, {"tensor_split": "5,1"}])
def test_every_tensor_lies_on_one_device(options: dict[str, object]) -> None:
    fit = measure("qwen3-30b-a3b", engine_options=options)
    whole = pc.memory("qwen3-30b-a3b", dtype="q4_k_m")
    excess = sum(share.weights_bytes for share in fit.shares) - whole.weights_bytes
    assert 0 <= excess < PADDING
    assert sum(share.layers for share in fit.shares) == 48


def test_a_tied_embedding_is_copied_to_the_gpu_of_the_lm_head() -> None:
    [first, second, cpu] = measure("qwen2.5-3b").shares
    whole = pc.memory("qwen2.5-3b", dtype="q4_k_m")
    embedding = sum(group.bytes for group in whole.weights if group.component == "embedding")
    assert cpu.weights_bytes == embedding
    assert 0 <= first.weights_bytes + second.weights_bytes - whole.weights_bytes < PADDING
    assert "copy of the token embedding" in second.extras


def test_moving_experts_to_the_cpu_leaves_the_cache_where_it_is() -> None:
    before, after = measure("qwen3-30b-a3b"), measure("qwen3-30b-a3b", engine_options={"n_cpu_moe": 48})
    for old, new in zip(before.shares, after.shares):
        assert old.kv_cache_bytes == new.kv_cache_bytes
        assert (old.weights_bytes > new.weights_bytes) == (old.device is not None)


def test_experts_in_another_format_than_the_file_keep_their_buffers() -> None:
    case: dict[str, Any] = {"dtype": "q8_0", "gpu": "T4", "context": 4096}
    plain, mixed = (
        measure("gpt-oss-20b", **case, component_dtypes=dtypes).shares[0].overhead
        for dtypes in ({}, {"experts": "mxfp4"})
    )
    assert plain == mixed


def test_without_offload_the_cache_is_on_the_cpu() -> None:
    shares = measure("llama-3.1-8b", engine_options={"no_kv_offload": True}).shares
    assert [bool(share.kv_cache_bytes) for share in shares] == [False, False, True]


def test_the_memory_of_the_cpu_counts_if_it_is_limited() -> None:
    options = {"n_gpu_layers": 10}
    assert measure("llama-3.1-70b", engine_options=options).verdict == "fits"
    limited = measure("llama-3.1-70b", engine_options=options, ram=16 * 10**9)
    assert (limited.verdict, limited.fullest.device, limited.memory_bytes) == ("does not fit", None, 16 * 10**9)


# server/routes.go of Ollama: 47 and 23 GiB of all GPUs together
@pytest.mark.parametrize(("memory", "context"), [(22, 4096), (24, 32_768), (48, 131_072)])
def test_the_default_context_of_ollama_follows_from_the_memory(memory: int, context: int) -> None:
    result = pc.memory("llama-3.1-8b", engine="ollama", dtype="q4_k_m", memory=memory * 2**30)
    assert result.context == context  # at most the model's


def test_what_ollama_leaves_free_counts_as_taken() -> None:
    case: dict[str, Any] = {"engine": "ollama", "context": 4096, "gpu": "RTX 3090"}
    plain, kept = (
        measure("llama-3.1-8b", **case, engine_options=options) for options in ({}, {"OLLAMA_GPU_OVERHEAD": 10**9})
    )
    assert plain.free_bytes - kept.free_bytes == 10**9
