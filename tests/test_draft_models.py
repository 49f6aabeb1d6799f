"""A model that drafts tokens: its weights and its cache come on top of those of the model that verifies them."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from tests.draft_heads import CONFIGS

GPU = 10**12  # bytes, in which everything fits
TARGET, DRAFT = "qwen3-8b", "qwen3-0.6b"


def measure(model: str, **options: Any) -> pc.Memory:
    return pc.memory(model, memory=GPU, **options)


@pytest.mark.parametrize("engine", ["minimal", "vllm", "sglang", "transformers"])
def test_a_draft_has_the_weights_and_the_cache_of_a_model_of_its_own(engine: str) -> None:
    options = {"engine": engine, "context": 6000, "batch": 3}
    drafted, alone, draft = (
        measure(TARGET, draft=DRAFT, **options), measure(TARGET, **options), measure(DRAFT, **options),
    )  # fmt: skip
    assert drafted.fit and alone.fit and draft.fit
    share, own = drafted.fit.fullest, draft.fit.fullest
    assert (share.draft_weights_bytes, share.draft_cache_bytes) == (own.weights_bytes, own.kv_cache_bytes)
    assert share.total_bytes == alone.fit.fullest.total_bytes + own.total_bytes
    assert drafted.draft
    assert drafted.total_bytes == alone.total_bytes + drafted.draft.total_bytes == alone.total_bytes + draft.total_bytes
    assert drafted.at(50_000).total_bytes == alone.at(50_000).total_bytes + draft.at(50_000).total_bytes


def test_llama_cpp_divides_the_layers_of_a_draft_like_those_of_the_model() -> None:
    options: dict[str, Any] = {"engine": "llama.cpp", "dtype": "q4_k_m", "pp": 2, "gpu": "2xH100", "kv_dtype": "f16"}
    drafted, draft = (
        pc.memory(TARGET, draft=DRAFT, draft_dtype="q8_0", **options),
        pc.memory(DRAFT, **{**options, "dtype": "q8_0"}),
    )
    assert drafted.fit and draft.fit
    found = [(it.device, it.draft_weights_bytes, it.draft_cache_bytes) for it in drafted.fit.shares]
    assert found == [(it.device, it.weights_bytes, it.kv_cache_bytes) for it in draft.fit.shares]


def test_gpus_that_cannot_share_the_heads_of_a_draft_hold_it_whole() -> None:
    fit = pc.memory("llama-3.1-8b", draft="gpt2-small", tp=8, gpu="8xH100", engine="vllm", context=1024).fit
    alone = pc.memory("gpt2-small", gpu="H100", engine="vllm", context=1024).fit
    assert fit and alone
    assert fit.fullest.draft_weights_bytes == alone.fullest.weights_bytes  # 12 heads among 8 GPUs


def test_a_model_that_is_loaded_again_has_the_same_format() -> None:
    drafted = pc.memory(TARGET, dtype="fp8", draft=TARGET)
    assert drafted.draft
    assert drafted.draft.weights_bytes == drafted.weights_bytes
    assert drafted.total_bytes == 2 * pc.memory(TARGET, dtype="fp8").total_bytes


def test_the_layer_that_sglang_adds_for_eagle_is_the_draft_itself() -> None:
    options: dict[str, Any] = {"engine": "sglang", "context": 4096}
    with_layer = measure("llama-3.1-8b", engine_options={"speculative_algorithm": "EAGLE3"}, **options)
    plain, named = (
        measure("llama-3.1-8b", **options),
        measure("llama-3.1-8b", draft="llama-3.2-1b", engine_options={"speculative_algorithm": "EAGLE3"}, **options),
    )
    assert named.kv_cache_bytes == plain.kv_cache_bytes < with_layer.kv_cache_bytes


def test_the_longest_context_leaves_room_for_the_cache_of_the_draft() -> None:
    options: dict[str, Any] = {"gpu": "RTX 4090", "engine": "vllm"}
    fit = pc.memory("llama-3.1-8b", draft="llama-3.2-1b", **options).fit
    assert fit and fit.longest_context
    longest = pc.memory("llama-3.1-8b", draft="llama-3.2-1b", context=fit.longest_context, **options).fit
    beyond = pc.memory("llama-3.1-8b", draft="llama-3.2-1b", context=fit.longest_context + 16, **options).fit
    assert longest and beyond
    assert (longest.fits, beyond.fits) == (True, False)


@pytest.mark.parametrize(
    ("engine", "options", "flags"),
    [
        (
            "vllm",
            {"num_speculative_tokens": 4},
            """--speculative-config '{"model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 4}'""",
        ),
        ("sglang", {}, "--speculative-algorithm STANDALONE --speculative-draft-model-path Qwen/Qwen3-0.6B"),
        ("llama.cpp", {}, "-md Qwen3-0.6B-BF16.gguf -ngld 999"),
    ],
)
def test_a_plan_starts_the_engine_with_the_draft(engine: str, options: dict[str, Any], flags: str) -> None:
    plan = pc.plan("qwen3-32b", gpu="h200", engine=engine, draft=DRAFT, engine_options=options)
    best = plan.deployments[0]
    assert flags in best.command
    assert best.speed is None
    assert "no bounds of the speed: a step yields as many tokens as the model accepts of the draft" in plan.notes
    checked = pc.memory("qwen3-32b", **best.arguments).fit
    assert checked
    assert checked.needed_bytes == best.fit.needed_bytes
    assert best.fit.fullest.draft_weights_bytes > 10**9


# ---- draft heads, which have the embedding of their target

CACHED = 2 * 8 * 128 * 2  # bytes of a token in a layer: keys and values of 8 heads in BF16
CONTEXT = 8192
# (draft, its target, layers that cache)
DRAFTS = [
    ("llama3-8B-eagle3", "llama-3.1-8b", 1),
    ("qwen3-8b-dflash", "qwen3-8b", 5),
    ("qwen3-8b-peagle", "qwen3-8b", 4),
]


@pytest.mark.parametrize("engine", ["minimal", "vllm", "sglang"])
@pytest.mark.parametrize(("name", "target", "layers"), DRAFTS)
def test_a_draft_head_adds_its_weights_without_the_targets_embedding_and_its_cache(
    engine: str, name: str, target: str, layers: int
) -> None:
    row = CONFIGS[name]
    memory = pc.memory(target, engine=engine, draft=row["config"], context=CONTEXT, gpu="h100")
    assert memory.draft is not None
    maps = memory.draft.weights_bytes - 2 * (row["total"] - row["embedding"])  # of its tokens, in a few bytes each
    assert row["buffers"] <= maps <= 8 * row["buffers"]
    per_token = layers * CACHED
    assert (
        CONTEXT * per_token <= memory.draft.cache_bytes <= (CONTEXT + 16) * per_token
    )  # and a page or block for padding
