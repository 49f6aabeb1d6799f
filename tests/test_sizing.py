"""`size`: configurations within a budget. Whatever it returns is valid, meets the budget and follows the rules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

import paramcount as pc
from tests.refusing import Refuse
from tests.running import Runner
from tests.structures import keep_every

LIKE = ("gpt2-small", "llama-3.1-8b", "gemma-3-1b", "qwen3-30b-a3b", "deepseek-v3", "codestral-mamba-7b", "t5-small")


def check_sizing(result: pc.Sizing) -> None:
    """Every candidate counted alone meets the budget, and the nearest come first."""
    budget = result.budget
    assert result.candidates
    for candidate in result.candidates:
        count = pc.count(pc.what_if(result.like, **candidate.sizes))
        assert (count.total, count.active) == (candidate.total, candidate.active)
        for n, target in ((count.total, budget.total), (count.active, budget.active)):
            assert target is None or abs(n - target) <= budget.within * target
        if budget.memory is not None:
            memory = pc.memory(candidate.model, dtype=budget.dtype, context=budget.context)
            assert candidate.memory == memory.total_bytes + budget.overhead
            assert 10 * candidate.memory <= 9 * budget.memory  # a tenth is left, as for "fits"
    if budget.total is not None and budget.active is None:
        distances = [abs(candidate.total - budget.total) for candidate in result.candidates]
        assert distances == sorted(distances)


@pytest.mark.parametrize("like", keep_every(5, LIKE))
@hypothesis.settings(max_examples=3, deadline=None, derandomize=True)
@given(share=st.integers(20, 400), within=st.sampled_from([0.01, 0.05, 0.3]), step=st.sampled_from([64, 128, 256]))
def test_no_candidate_misses_the_budget(like: str, share: int, within: float, step: int) -> None:
    total = pc.count(like).total * share // 100
    problem = ""
    try:
        check_sizing(pc.size(like, total=total, within=within, multiple_of=step, limit=4))
    except pc.ParamcountError as error:
        problem = str(error)
    if problem:
        nearest = int(problem.rpartition("the nearest has ")[2].rstrip(")").replace(",", ""))
        assert abs(nearest - total) > within * total


@pytest.mark.parametrize(
    ("like", "options"),
    [
        ("llama-3.1-8b", {"memory": 24 * 10**9, "context": 8192}),
        ("llama-3.1-8b", {"memory": 8 * 10**9, "dtype": "q4_k_m", "total": 7 * 10**9, "within": 0.2}),
        ("qwen3-30b-a3b", {"total": 10**10, "active": 10**9, "within": 0.3, "vary": ["layers", "n_active_experts"]}),
        ("gpt2-small", {"total": 10**8, "vary": ["n_embd"], "multiple_of": 64, "within": 0.2}),
        ("gemma-3-1b", {"memory": 4 * 10**9, "vary": ["n_layers"]}),
    ],
)  # fmt: skip
def test_budgets_of_several_kinds_are_met(like: str, options: dict[str, Any]) -> None:
    check_sizing(pc.size(like, limit=5, **options))


def test_candidates_of_llama_have_its_proportions() -> None:
    like = pc.load("llama-3.1-8b").sizes
    for candidate in pc.size("llama-3.1-8b", total=3 * 10**9, limit=20).candidates:
        c: Any = candidate.model.sizes
        assert c.d_model % 128 == c.d_ff % 128 == 0
        assert (c.n_heads * c.d_head, c.d_head) == (c.d_model, 128)
        assert c.n_kv_heads == 8 or c.n_heads // c.n_kv_heads == 4
        assert abs(c.d_ff - 3.5 * c.d_model) <= 64
        assert 64 <= c.d_model / c.n_layers <= 256
        assert (c.vocab_size, c.tie_word_embeddings) == (like.vocab_size, False)  # type: ignore[attr-defined]


def test_the_published_shape_is_found_at_its_own_total() -> None:
    for like in ("llama-3.1-8b", "gpt2-small"):
        total = pc.count(like).total
        best = pc.size(like, total=total, within=0, limit=1).candidates[0]
        assert best.total == total
        assert best.model.sizes == pc.load(like).sizes


def test_a_pattern_of_layer_types_is_repeated_whole() -> None:
    pattern = ("sliding_attention",) * 5 + ("full_attention",)
    for candidate in pc.size("gemma-3-1b", total=15 * 10**8, within=0.3).candidates:
        types = candidate.sizes["layer_types"]
        assert types == pattern * (candidate.sizes["n_layers"] // 6)


def test_memory_alone_lists_the_largest_first() -> None:
    totals = [candidate.total for candidate in pc.size("llama-3.1-8b", memory=24 * 10**9).candidates]
    assert totals == sorted(totals, reverse=True)
    assert len(totals) == 10


def test_each_panel_of_a_narrow_table_starts_with_the_sizes_that_vary(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = run("size", "--like", "mixtral-8x7b", "--total", "20B", "--limit", "1").out.splitlines()
    headings = [line.split() for line in lines if line.startswith("d_model ")]
    assert [line for line in headings if "active" in line] == [["d_model", "layers", "active"]]


def test_the_best_configuration_is_saved_as_a_valid_entry(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "my-3b.yaml"
    done = run("size", "--like", "llama-3.1-8b", "--total", "3B", "--limit", "1", "--save", str(path), "--json")
    best = json.loads(done.out)["candidates"][0]
    saved = pc.load(path)
    assert (saved.id, pc.count(saved).total) == ("my-3b", best["total"])
    assert {name: getattr(saved.sizes, name) for name in best["sizes"]} == best["sizes"]
    assert saved.entry is not None
    assert saved.entry.settings == pc.load("llama-3.1-8b").entry.settings  # type: ignore[union-attr]
    assert run("validate", str(path)).code == 0


def test_the_memory_that_the_smallest_configuration_needs_is_enough(refuse: Refuse) -> None:
    message = refuse("size", "--like", "gpt2-small", "--total", "1B", "--memory", "2GB")
    total, needed = (
        int(figure.replace(",", "")) for figure in re.findall(r"of (\S+) param.* needs (\S+) bytes", message)[0]
    )
    found = pc.size("gpt2-small", total=10**9, memory=needed, limit=100).candidates
    # nine tenths of the memory hold it
    assert needed in [
        -(-10 * (candidate.memory or 0) // 9) for candidate in found if candidate.total == total and candidate.memory
    ]
