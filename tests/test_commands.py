"""The command lines that start an engine like a deployment."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from paramcount.costs.caches import list_layer_caches
from paramcount.costs.deployment import Deployment
from paramcount.costs.devices import make_device
from paramcount.costs.dtypes import parse_kv_dtype
from paramcount.costs.engines import ENGINES
from paramcount.costs.engines.records import CacheRequest
from paramcount.costs.sharding import Parallelism, find_shape
from paramcount.loading import load
from paramcount.zoo import count_model

ONE = Parallelism()


def write_command(engine: str, *, kv_dtype: str = "bf16", parallel: Parallelism = ONE, **options: Any) -> str:
    """The command for 16 sequences of 32,768 tokens on H100s."""
    model, rules = load("mixtral-8x7b"), ENGINES[engine]
    request = CacheRequest(32_768, 16, parse_kv_dtype(kv_dtype), options=options)
    _, device = make_device("h100", None, None, options.pop("utilization", rules.utilization))
    shape = find_shape(count_model(model).sizes)
    deployment = Deployment(model, (), list_layer_caches(model), shape, rules, request, device, parallel)
    return rules.write_command(deployment, "the model")


@pytest.mark.parametrize(
    ("engine", "arguments", "expected"),
    [
        ("vllm", {}, "--max-model-len 32768 --max-num-seqs 16"),
        (
            "vllm",
            {"parallel": Parallelism(8, 2, 8), "kv_dtype": "fp8", "utilization": 0.85, "block_size": 32},
            "--tensor-parallel-size 8 --pipeline-parallel-size 2 --enable-expert-parallel --max-model-len 32768"
            " --max-num-seqs 16 --kv-cache-dtype fp8 --gpu-memory-utilization 0.85 --block-size 32",
        ),
        (
            "vllm",
            {"parallel": Parallelism(ep=8), "enable_prefix_caching": False, "disable_hybrid_kv_cache_manager": True},
            # max_num_seqs "applies per data-parallel rank" (config/scheduler.py)
            "--data-parallel-size 8 --enable-expert-parallel --max-model-len 32768 --max-num-seqs 2"
            " --no-enable-prefix-caching --disable-hybrid-kv-cache-manager",
        ),
    ],
)
def test_vllm_serve_has_the_flags_of_a_deployment(engine: str, arguments: dict[str, Any], expected: str) -> None:
    assert write_command(engine, **arguments) == f"vllm serve 'the model' {expected}"


def test_a_version_is_no_flag_of_a_server() -> None:
    command = write_command("sglang", version="v0.5.9", page_size=64)
    assert command.endswith("--context-length 32768 --max-running-requests 16 --page-size 64")
    assert write_command("vllm", version="v0.14", block_size=32).endswith("--max-num-seqs 16 --block-size 32")


def test_llama_server_takes_the_context_of_all_sequences_together() -> None:
    command = write_command("llama.cpp", kv_dtype="q8_0,f16", ubatch_size=256, parallel=Parallelism(pp=2))
    assert shlex.split(command) == [
        "llama-server", "-m", "the model", "-c", "524288", "-np", "16", "-ngl", "999", "-ub", "256", "-ctk", "q8_0",
    ]  # fmt: skip


def test_an_engine_without_a_server_has_no_command() -> None:
    assert write_command("minimal") == write_command("transformers") == ""
