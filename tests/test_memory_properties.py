"""What holds for the memory of every model under every engine."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paramcount as pc
from paramcount.api import load
from paramcount.costs.caches import CacheGroup, list_cache_groups
from paramcount.costs.dtypes import parse_kv_dtype
from paramcount.costs.engines import ENGINES
from paramcount.costs.engines.records import CacheRequest
from paramcount.costs.weight_formats import store_once

# One of each kind of cache: all tokens, windows, latents, states with and without attention, another text, an image.
MODELS = (
    "llama-3.1-8b", "gpt-oss-20b", "gemma-3-1b", "deepseek-v3", "jamba-v0.1", "qwen3-next-80b-a3b",
    "codestral-mamba-7b", "t5-small", "llama-3.2-11b-vision",
)  # fmt: skip
DTYPES = ("q4_0", "q5_0", "fp8", "q8_0", "bf16", "f32")  # by bits per value
REQUESTS = st.builds(
    CacheRequest,
    context=st.integers(1, 300_000),
    batch=st.integers(1, 64),
    kv_dtype=st.sampled_from(DTYPES).map(parse_kv_dtype),
    source=st.integers(1, 5000),
    tp=st.sampled_from((1, 2, 4, 8)),
    state_dtype=st.none(),
    config_state_dtype=st.none(),
    options=st.just({}),
)
ANY = {"model": st.sampled_from(MODELS), "engine": st.sampled_from(sorted(ENGINES)), "request": REQUESTS}
CHECKS = settings(max_examples=60, deadline=None)


@cache
def list_groups(model: str) -> tuple[CacheGroup, ...]:
    return list_cache_groups(load(model))


def measure(model: str, engine: str, request: CacheRequest) -> int:
    return ENGINES[engine].allocate(list_groups(model), request).total_bytes


@CHECKS
@given(field=st.sampled_from(("context", "batch")), more=st.integers(1, 100_000), **ANY)
def test_memory_never_falls_with_the_context_or_the_batch(
    model: str, engine: str, request: CacheRequest, field: str, more: int
) -> None:
    larger = request._replace(**{field: getattr(request, field) + more})
    assert measure(model, engine, request) <= measure(model, engine, larger)


@CHECKS
@given(low=st.integers(0, 5), high=st.integers(0, 5), **ANY)
def test_memory_never_falls_with_the_bits_of_the_cache(
    model: str, engine: str, request: CacheRequest, low: int, high: int
) -> None:
    names = [name for name in DTYPES if engine != "vllm" or not name.startswith("q")]  # vLLM has no such dtypes
    fewer, more = (names[i % len(names)] for i in sorted((low % len(names), high % len(names))))
    sizes = [measure(model, engine, request._replace(kv_dtype=parse_kv_dtype(name))) for name in (fewer, more)]
    assert sizes == sorted(sizes)


@CHECKS
@given(**ANY)
def test_no_engine_allocates_less_than_the_computation_needs(model: str, engine: str, request: CacheRequest) -> None:
    assert measure(model, engine, request) >= measure(model, "minimal", request)


@CHECKS
@given(available=st.integers(0, 10**11), **ANY)
def test_the_tokens_that_fit_do_and_more_sequences_do_not(
    model: str, engine: str, request: CacheRequest, available: int
) -> None:
    tokens = ENGINES[engine].count_tokens(list_groups(model), request, available)
    whole = tokens // request.context
    allocation = ENGINES[engine].allocate(list_groups(model), request._replace(batch=whole + 1))
    if allocation.unit_bytes > 1 or engine in ("minimal", "transformers"):  # they need as much for each sequence
        assert allocation.total_bytes - allocation.shared_bytes > available - available % allocation.unit_bytes


@settings(max_examples=6, deadline=None)
@given(
    model=st.sampled_from(("llama-3.1-8b", "gpt-oss-20b", "jamba-v0.1", "gemma-3-1b", "codestral-mamba-7b")),
    engine=st.sampled_from(sorted(ENGINES)),
    memory=st.integers(30 * 10**9, 200 * 10**9),
    batch=st.integers(1, 8),
)
def test_one_more_token_or_sequence_than_the_largest_does_not_fit(
    model: str, engine: str, memory: int, batch: int
) -> None:
    result = pc.memory(model, engine=engine, memory=memory, batch=batch, context=4096)
    fit = result.fit
    assert fit is not None
    for context, n in ((fit.longest_context, batch), (4096, fit.largest_batch)):
        if not context or not n:  # nothing fits, or everything does
            continue
        at = pc.memory(model, engine=engine, memory=memory, batch=n, context=context).fit
        assert at is not None
        assert at.fits
        if context == result.context_limit:
            continue
        more = (context + 1, n) if context != 4096 else (context, n + 1)
        beyond = pc.memory(model, engine=engine, memory=memory, batch=more[1], context=more[0]).fit
        assert beyond is not None
        assert not beyond.fits


@pytest.mark.parametrize("model", MODELS)
def test_every_token_of_a_large_context_is_counted(model: str) -> None:
    source = 1000 if any(group.stream == "source" for group in list_groups(model)) else None
    short, long = (pc.memory(model, context=n, source=source) for n in (1_000_000, 1_000_128))
    assert long.kv_cache_bytes - short.kv_cache_bytes == 128 * short.kv_bytes_per_token


@pytest.mark.parametrize("model", ["qwen3-vl-30b-a3b", "gpt-oss-20b", "qwen3-next-80b-a3b", "deepseek-v3"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama.cpp", "transformers"])
def test_an_answer_does_not_depend_on_what_was_asked_before(model: str, engine: str) -> None:
    questions: list[dict[str, Any]] = [
        {"context": 2}, {"context": 8192, "gpu": "8xA100-80GB"}, {"context": 40_000, "batch": 3},
        {"kv_dtype": "fp8" if engine != "llama.cpp" else "q8_0"}, {"gpu": "4xRTX 4090"},
    ]  # fmt: skip

    def answer(question: dict[str, Any]) -> Any:
        return pc.memory(model, engine=engine, **{"gpu": "8xH100", **question}).to_dict()

    fresh = []
    for question in questions:
        store_once.cache_clear()
        fresh.append(answer(question))
    store_once.cache_clear()
    assert [answer(question) for question in reversed(questions)] == fresh[::-1]
