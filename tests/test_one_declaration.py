"""Formulas, traces and pictures are readings of one declaration: where it changes, all of them change."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from paramcount.counting import sum_weights
from paramcount.counting.count import count_sizes
from paramcount.explaining.formulas import sum_symbols
from tests.test_mutants import MUTANTS


def read_model(id: str) -> dict[str, Any]:
    """What each of them says of a model."""
    sum_symbols.cache_clear()  # declarations do not change while a program runs
    vars(sum_weights)["_structures"].clear()
    explained = pc.explain(id)
    return {
        "count": count_sizes(pc.load(id).sizes).total,  # walked anew
        "formulas": [(line.formula, line.numbers, line.value) for line in explained.lines],
        "polynomial": str(pc.formula(id)),
        "trace": [(step.op, step.out, [held.shape for held in step.weights], step.note) for step in pc.trace(id).steps],
        "picture": pc.draw(id).svg(),
    }


@pytest.mark.parametrize("name", ["MLP without gate", "norm without weight", "head always tied"])
def test_a_changed_declaration_changes_formulas_traces_and_pictures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_model("llama-3.1-8b")
    MUTANTS[name].apply(monkeypatch)
    after = read_model("llama-3.1-8b")
    assert [reading for reading in before if after[reading] == before[reading]] == []
    monkeypatch.undo()
    assert read_model("llama-3.1-8b") == before
