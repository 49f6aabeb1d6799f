"""Whether a model fits: three answers, and suggestions that the command itself confirms.

Logged runs are in tests/data/logged, and what each engine says about them in tests/test_logged.py.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import paramcount as pc
from paramcount.costs.fit import Probe, find_largest
from paramcount.costs.requests import find_longest_context
from tests.batches import in_batches
from tests.running import Runner
from tests.structures import pick_structures


def measure(model: str, **arguments: Any) -> Any:
    fit = pc.memory(model, **arguments).fit
    assert fit is not None
    return fit


def test_gpt_oss_120b_on_one_h100_is_too_close_to_call_without_an_engine() -> None:
    # vLLM lacked 2.14 GiB at utilization 0.9 and 2.83 GiB at 0.95 (tests/data/logged/vllm.csv)
    guesses: list[dict[str, Any]] = [{}, {"utilization": 0.95}]
    for options in guesses:
        assert measure("gpt-oss-120b", gpu="H100", context=131_072, **options).verdict == "too close to call"
    for utilization in (0.9, 0.95):
        options = {"engine": "vllm", "utilization": utilization, "engine_options": {"version": "v0.10"}}
        assert measure("gpt-oss-120b", gpu="H100", context=131_072, **options).verdict == "does not fit"


# Llama 3.1 8B at 8,192 tokens: 16,060,522,496 bytes of weights, 1,073,741,824 of cache
NEEDED = 16_060_522_496 + 1_073_741_824


@pytest.mark.parametrize(
    ("memory", "overhead", "verdict", "code"),
    [
        (20_149_182_578, 10**9, "fits", 0),  # 9/10 of the memory − 1 GB is one byte more than needed
        (20_149_182_576, 10**9, "too close to call", 3),
        (NEEDED, 10**9, "too close to call", 3),  # without overhead it fits exactly
        (NEEDED - 1, 10**9, "does not fit", 1),  # not even without overhead
        (20 * 10**9, 10 * 10**9, "too close to call", 3),  # 7.13 GB short, but that is the overhead, which is assumed
    ],
)
def test_a_fit_has_three_answers(run: Runner, memory: int, overhead: int, verdict: str, code: int) -> None:
    fit = measure("llama-3.1-8b", memory=memory, overhead=overhead)
    assert (fit.verdict, fit.fits) == (verdict, verdict == "fits")
    assert fit.margin_bytes == -(-memory // 10)
    found = run(
        "memory", "llama-3.1-8b", "--memory", f"{memory / 10**9:.9f}GB", "--overhead", f"{overhead / 10**9}GB", "--json"
    )
    assert found.code == code
    assert json.loads(found.out)["fit"]["verdict"] == verdict


def test_a_training_has_three_answers_and_exit_codes(run: Runner) -> None:
    # GPT-2: 16 bytes for each of 124,439,808 parameters and the activations; a margin of a tenth and of what
    # implementations keep besides; a loss that is computed in chunks needs no logits of 1,024 tokens
    total = pc.training("gpt2-small").total_bytes
    logits = 4 * 1024 * 50257
    for memory, verdict, code in (
        (3 * total, "fits", 0),
        (total, "too close to call", 3),
        (total - logits, "too close to call", 3),
        (total - logits - 1, "does not fit", 1),
    ):
        fit = pc.training("gpt2-small", memory=memory, overhead=total // 50).fit
        assert fit is not None
        assert (fit.verdict, fit.fits) == (verdict, verdict == "fits")
        line = ["--memory", f"{memory / 10**9:.9f}GB", "--overhead", f"{total // 50 / 10**9:.9f}GB", "--json"]
        found = run("training", "gpt2-small", *line)
        assert (found.code, json.loads(found.out)["fit"]["verdict"]) == (code, verdict)


def test_the_assumed_overhead_alone_does_not_rule_a_model_out(run: Runner) -> None:
    # 219 MB of weights on a device of 1 GB, all of which the overhead takes
    found = run("memory", "bert-base-uncased", "--memory", "1GB")
    assert found.code == 3
    text = " ".join(found.out.split())
    assert "too close to call on one 1.00 GB device: 219 MB short, but the overhead of 1.00 GB is assumed" in text
    assert "the overhead leaves no memory to a GPU" in text


@in_batches("id", pick_structures())
def test_one_device_holds_all_weights_and_the_whole_cache(id: str) -> None:
    # also what stands beside the decoder's layers in stacks of its own, such as BLT's global transformer
    context = min(512, find_longest_context(pc.load(id)) or 512)
    memory = pc.memory(id, gpu="H100", context=context)
    assert memory.fit is not None
    [share] = memory.fit.shares
    assert share.total_bytes == memory.total_bytes


CASES: list[dict[str, Any]] = [
    {"model": "qwen3-235b-a22b", "dtype": "fp8", "gpu": "4xH100", "context": 32_768, "batch": 16},
    {"model": "llama-3.1-70b", "gpu": "H100"},
    {"model": "llama-3.1-70b", "gpu": "8xH100", "pp": 8, "context": 131_072, "batch": 16},
    {"model": "llama-3.1-8b", "memory": 18 * 10**9, "context": 65_536},
    {"model": "llama-3.1-8b", "memory": 6 * 10**9, "context": 131_072, "batch": 4},
    {"model": "gpt-oss-20b", "memory": 16 * 10**9, "engine": "vllm"},
    {"model": "mixtral-8x7b", "gpu": "2xH100", "ep": 2, "engine": "vllm", "batch": 64},
    {"model": "gemma-3-4b", "gpu": "RTX 3060 12GB", "engine": "llama.cpp", "context": 131_072, "batch": 3},
    {"model": "gemma-3-4b", "gpu": "RTX 3060 12GB", "dtype": "q8_0", "context": 131_072, "batch": 8},
    {"model": "jamba-v0.1", "gpu": "RTX 5090", "batch": 64, "component_dtypes": {"experts": "int4"}},
    {"model": "t5-3b", "memory": 8 * 10**9, "context": 16_384},
    {"model": "qwen3-30b-a3b", "gpu": "RTX 3060 12GB", "dtype": "q4_k_m", "engine": "llama.cpp", "context": 32_768},
    {"model": "llama-3.1-70b", "gpu": "RTX 4090", "dtype": "q4_k_m", "engine": "ollama", "context": 8192},
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['model']}-{case.get('gpu', case.get('memory'))}")
def test_every_suggestion_fits_when_the_same_call_is_made_with_it(case: dict[str, Any]) -> None:
    fit = measure(**case)
    assert fit.verdict != "fits"
    assert fit.suggestions
    for suggestion in fit.suggestions:
        at = measure(**(case | suggestion.options))
        assert (at.verdict, at.free_bytes) == ("fits", suggestion.free_bytes), suggestion


def test_layers_and_experts_on_the_cpu_are_the_fewest_that_make_it_fit() -> None:
    case: dict[str, Any] = {"gpu": "RTX 3060 12GB", "dtype": "q4_k_m", "engine": "llama.cpp", "context": 32_768}
    fit = measure("qwen3-30b-a3b", **case)
    added = [dict(s.options)["engine_options"] for s in fit.suggestions if "engine_options" in s.options]
    assert [list(options) for options in added] == [["n_cpu_moe"], ["n_gpu_layers"]]
    (experts, layers) = (next(iter(options.values())) for options in added)
    assert measure("qwen3-30b-a3b", **case, engine_options={"n_cpu_moe": experts - 1}).verdict != "fits"
    assert measure("qwen3-30b-a3b", **case, engine_options={"n_gpu_layers": layers + 1}).verdict != "fits"


def test_what_fits_may_suggest_a_longer_context(run: Runner) -> None:
    fit = measure("llama-3.1-8b", memory=24 * 10**9)
    [suggestion] = fit.suggestions
    assert suggestion.options == {"kv_dtype": "fp8"}
    longest = measure("llama-3.1-8b", memory=24 * 10**9, **suggestion.options).longest_context
    assert suggestion.longest_context == longest > fit.longest_context
    text = run("memory", "llama-3.1-8b", "--memory", "24GB").out
    assert f"longest context with --kv-dtype fp8: {longest:,} tokens" in text


@pytest.mark.parametrize(
    ("gigabytes", "reached"),
    [(30, [131_072]), (80, [])],  # the limit of the model, with an FP8 cache and without one
)
def test_a_smaller_cache_does_not_exceed_the_limit_of_the_model(gigabytes: int, reached: list[int]) -> None:
    fit = measure("llama-3.1-8b", memory=gigabytes * 10**9)
    assert [suggestion.longest_context for suggestion in fit.suggestions] == reached


def test_every_saving_of_a_training_fits() -> None:
    case: dict[str, Any] = {"model": "llama-3.1-8b", "context": 8192, "gpu": "8xH100", "flash_attention": False}
    fit = pc.training(**case).fit
    assert fit is not None
    assert [dict(suggestion.options) for suggestion in fit.suggestions] == [
        {"zero": 3, "checkpointing": "full"},
        {"lora": True, "weights": "nf4-double", "checkpointing": "full"},
    ]
    for suggestion in fit.suggestions:
        at = pc.training(**case | dict(suggestion.options)).fit
        assert at is not None
        assert (at.verdict, at.free_bytes) == ("fits", suggestion.free_bytes)


def test_the_source_follows_the_context_unless_it_is_given() -> None:
    # T5's cache of the encoder's output grows with the context, which is the encoder input length by default
    fit = measure("t5-3b", memory=8 * 10**9, context=1024)
    longest = fit.longest_context
    assert measure("t5-3b", memory=8 * 10**9, context=longest).verdict == "fits"
    assert measure("t5-3b", memory=8 * 10**9, context=longest + 1).verdict != "fits"


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        (
            ["llama-3.1-70b", "--gpu", "h100"],
            ["does not fit on 1 × H100 SXM: needs 145 GB; 85.0 GB available; 59.8 GB short", "minimum: 2 GPUs (TP=2)"],
        ),
        (
            ["qwen3-235b-a22b", "--dtype", "fp8", "--gpu", "4xh100", "--context", "32k", "--batch", "16"],
            [
                "too close to call on 4 × H100 SXM (TP=4): 401 MB short per GPU, less than the margin of 8.50 GB "
                "(10% of the memory)",
                "fits with --kv-dtype fp8, --batch 10, --context 20480 or --dtype int4 · minimum: 8 GPUs (TP=8)",
            ],
        ),
    ],
)
@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_verdict_states_its_margin(
    run: Runner, monkeypatch: pytest.MonkeyPatch, width: int, line: list[str], lines: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = " ".join(run("memory", *line).out.split())
    assert all(part in text for part in lines)


@pytest.mark.parametrize("block", [1, 16, 784])
@pytest.mark.parametrize("per_block", [0, 1, 10**6])
def test_the_largest_number_that_leaves_something_is_found(block: int, per_block: int) -> None:
    """What is left falls in steps; whatever is known before, and wherever the search starts."""
    numbers = random.Random(block + per_block)  # noqa: S311
    for _ in range(300):
        limit = numbers.choice([None, 1, 7, 8192, 131_072])
        most = limit or 10**6
        last = numbers.choice([0, 1, most, numbers.randrange(most + 1)]) // block * block

        def measure_slack(n: int, last: int = last, most: int = most) -> int:
            assert 1 <= n <= most
            blocks = (last - n) // block
            return blocks * per_block + (0 if blocks >= 0 else -1)

        tried = numbers.randrange(1, most + 1)
        known = numbers.choice([None, Probe(tried, measure_slack(tried))])
        expected = None if limit is None and last == most else last
        assert find_largest(measure_slack, limit, most, numbers.randrange(-2, 2 * most), known) == expected
