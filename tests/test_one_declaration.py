"""Formulas, traces and pictures are readings of one declaration: where it changes, all of them change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import paramcount as pc
from paramcount import flow
from paramcount.counting.count import count_sizes
from paramcount.explaining.formulas import sum_symbols
from paramcount.parts import decoders, feed_forward
from tests.test_mutants import Patch, replace_everywhere


def wider_mlp(patch: Patch) -> None:
    original = feed_forward.gated_mlp
    replace_everywhere(
        patch, original, lambda x, prefix, component, d_ff, **k: original(x, prefix, component, d_ff + 1, **k)
    )


def norm_forgotten(patch: Patch) -> None:
    replace_everywhere(patch, flow.norm, lambda x, name, **k: x)


def biases_everywhere(patch: Patch) -> None:
    original = flow.linear
    replace_everywhere(patch, original, lambda *a, bias=False, **k: original(*a, bias=True, **k))


def head_tied(patch: Patch) -> None:
    original = decoders.head
    replace_everywhere(
        patch, original, lambda c, x, table, *a, **k: flow.linear(x, "lm_head", "lm_head", c.vocab_size, tied_to=table)
    )


def read_model(id: str) -> dict[str, Any]:
    """What each of them says of a model."""
    sum_symbols.cache_clear()  # declarations do not change while a program runs
    explained = pc.explain(id)
    return {
        "count": count_sizes(pc.load(id).sizes).total,  # walked anew
        "formulas": [(line.formula, line.numbers, line.value) for line in explained.lines],
        "polynomial": str(pc.formula(id)),
        "trace": [(step.op, step.out, [held.shape for held in step.weights], step.note) for step in pc.trace(id).steps],
        "picture": pc.draw(id).svg(),
    }


@pytest.mark.parametrize(
    "mutant", [wider_mlp, norm_forgotten, biases_everywhere, head_tied], ids=lambda mutant: mutant.__name__
)
def test_a_changed_declaration_changes_formulas_traces_and_pictures(
    mutant: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    before = read_model("llama-3.1-8b")
    mutant(monkeypatch)
    after = read_model("llama-3.1-8b")
    assert [name for name in before if after[name] == before[name]] == []
    monkeypatch.undo()
    assert read_model("llama-3.1-8b") == before
