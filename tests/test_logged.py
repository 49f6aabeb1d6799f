"""What paramcount says of logged runs is what their logs print, and no verdict is the contrary of what happened.

The rows are tests/data/logged, each with its source.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import paramcount as pc
from paramcount.costs.devices import DOES_NOT_FIT, FITS, TOO_CLOSE
from tests import llama_figures, sglang_figures, training_figures, vllm_figures
from tests.batches import in_batches
from tests.logged import ENGINES, FULFILLED, GIB, LoggedFigure, agrees, find_share, measure, read_logged

GUIDE = Path(pc.__file__).parent / "docs" / "accuracy.md"
LOGGED = {engine: read_logged(engine) for engine in ENGINES}
ROWS = sorted(
    ((engine, row.id) for engine, rows in LOGGED.items() for row in rows.values()),
    key=lambda it: (it[0], LOGGED[it[0]][it[1]].model),
)
# Weights in BF16 of which vLLM prints tenths of a MiB, so that norms, scales and what PyTorch rounds up count, too.
EXACT = (
    "log-01-qwen3-4b", "log-02-qwen3-30b-a3b-instruct-2507", "log-05-qwen3-32b", "log-17-x", "log-31-deepseek-r1-14b",
    "log-19-meta-llama-3.1-8b-instruct", "log-25-meta-llama-3-8b-instruct", "log-65-qwen3-vl-embedding-2b",
)  # fmt: skip


def count_peak(engine: str, row: LoggedFigure) -> float:
    """GiB on all GPUs together: "peak_gib" as the driver sees it, "allocated_gib" without the CUDA contexts."""
    fit = measure(engine, row.model, row.arguments).fit
    assert fit is not None
    contexts = sum(dict(share.overhead.items)["CUDA context"] for share in fit.shares)
    total = sum(share.devices * (share.total_bytes + share.overhead.usual) for share in fit.shares)
    return (total - (contexts if row.figure == "allocated_gib" else 0)) / GIB


COUNT = {
    "vllm": vllm_figures.count_figure,
    "sglang": sglang_figures.count_figure,
    "llama_cpp": llama_figures.count_figure,
    "ollama": llama_figures.count_figure,
    "transformers": count_peak,
    "training": training_figures.count_figure,
}


def judge(engine: str, row: LoggedFigure) -> str:
    """Whether a run fits."""
    if engine == "training":
        fit = training_figures.train(row.model, json.dumps(row.arguments, sort_keys=True)).fit
        assert fit is not None
        return fit.verdict
    memory = measure(engine, row.model, row.arguments)
    assert memory.fit is not None
    return memory.fit.verdict


@in_batches(("engine", "id"), [(engine, id) for engine, id in ROWS if LOGGED[engine][id].kind != "outcome"])
def test_a_figure_is_what_the_log_prints_unless_there_is_a_reason(engine: str, id: str) -> None:
    row = LOGGED[engine][id]
    found = COUNT[engine](engine, row)
    assert agrees(row, found) == (not row.reason), f"{found} instead of {row.value}"


@pytest.mark.parametrize("id", EXACT)
def test_weights_are_exact_to_the_last_digit(id: str) -> None:
    row = LOGGED["vllm"][f"{id}-weights_gib"]
    assert f"{COUNT['vllm']('vllm', row):.4f}" == row.value


@pytest.mark.parametrize("engine", ENGINES)
def test_nine_tenths_of_the_figures_are_met_in_both_parts(engine: str) -> None:
    for kinds in (("arithmetic",), ("arithmetic", "profiled")):
        rows = [row for row in LOGGED[engine].values() if row.kind in kinds]
        for aside in {row.aside for row in rows}:
            assert find_share(rows, aside=aside) >= FULFILLED


@in_batches(("engine", "id"), [(engine, id) for engine, id in ROWS if LOGGED[engine][id].kind == "outcome"])
def test_nothing_that_worked_does_not_fit_and_nothing_that_ran_out_of_memory_fits(engine: str, id: str) -> None:
    row = LOGGED[engine][id]
    if not row.reason:
        assert judge(engine, row) != (DOES_NOT_FIT if row.value.startswith("worked") else FITS)


@pytest.mark.exhaustive
def test_the_guide_has_the_answers_for_all_runs() -> None:
    found: Counter[tuple[bool, str]] = Counter()
    for engine in ENGINES:
        rows = [row for row in LOGGED[engine].values() if row.kind == "outcome"]
        found.update((row.value.startswith("worked"), judge(engine, row)) for row in rows)
    worked, failed = (sum(n for key, n in found.items() if key[0] == kind) for kind in (True, False))
    assert found[True, DOES_NOT_FIT] == 0
    assert found[True, FITS] >= 0.8 * worked
    assert found[False, DOES_NOT_FIT] >= 0.6 * failed
    assert found[False, FITS] == 0
    assert found[True, TOO_CLOSE] + found[False, TOO_CLOSE] <= 0.15 * (worked + failed)
    text = " ".join(GUIDE.read_text(encoding="utf-8").split())
    assert (
        f'Of {worked} runs that worked {found[True, FITS]} are called "fits" and {found[True, TOO_CLOSE]} '
        f'"too close to call". Of {failed} that ran out of memory {found[False, DOES_NOT_FIT]} are called "does '
        f'not fit", {found[False, TOO_CLOSE]} "too close to call" and {found[False, FITS]} "fits"'
    ) in text
