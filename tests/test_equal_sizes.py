"""Sizes that are equal by accident: a count depends neither on the counts before it nor on how it is computed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pandas
import pytest

import paramcount as pc
from paramcount.counting import sum_weights as sums
from paramcount.sizes import Sizes
from paramcount.zoo.what_if import change_sizes
from tests.model_types import MODEL_TYPES, default_document
from tests.structures import keep_every

LUKE: dict[str, Any] = {
    "model_type": "luke", "vocab_size": 64, "hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4,
    "intermediate_size": 96, "max_position_embeddings": 64, "type_vocab_size": 2, "entity_vocab_size": 32,
}  # fmt: skip
# sum(p.numel()) of LukeForMaskedLM in transformers 5.23.0, by entity_emb_size
TOTALS = {32: 125_824, 48: 125_616, 64: 130_016}
COMPARING = {"luke", "fun_asr_nano", "neomme", "perceiver", "gemma3n"}  # whose forward passes compare sizes
MOST_STEPS = 100
TYPES = [*sorted(COMPARING), *keep_every(30, set(MODEL_TYPES) - COMPARING)]


@pytest.fixture(autouse=True)
def forget_structures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "_structures", {})


def list_equal(model: pc.Model) -> Iterator[Sizes]:
    """The sizes of a model with each two of them equal once, or one of them 0, 1 or 2, if that is valid."""
    numbers = sums.list_numbers(model.sizes)
    choices = [[(a, numbers[b]), (b, numbers[a])] for a, b in combinations(numbers, 2) if numbers[a] != numbers[b]]
    choices += [[(path, n)] for path in numbers for n in (0, 1, 2) if numbers[path] != n]
    rng = random.Random(model.architecture)  # noqa: S311 - a sample, always the same
    rng.shuffle(choices)
    for changes in choices:
        rng.shuffle(changes)
        for path, value in changes:
            is_number = path.rpartition(".")[2].startswith("n_")  # of steps too, which some declarations list
            if not (is_number and value > MOST_STEPS):
                try:
                    yield change_sizes(model, {path: value}).sizes
                    break  # the other size as large as this one is the same equality
                except pc.ParamcountError:
                    continue


def compare_sums(found: sums.Sums, expected: sums.Sums) -> None:
    for name in ("components", "details", "parts", "excluded"):
        ours, theirs = (getattr(result, name) for result in (found, expected))
        assert {k: n for k, n in ours.items() if n} == {k: n for k, n in theirs.items() if n}, name
    assert {**found.components, **found.active} == {**found.components, **expected.active}
    assert (found.tied, found.active_slack) == (expected.tied, expected.active_slack)


def check_order(configs: list[Sizes]) -> None:
    """Counts from polynomials are those from weights, whichever config the polynomials were derived from."""
    for order in (configs, configs[::-1]):
        sums._structures.clear()
        for sizes in order:
            expected = sums.sum_weights(sizes, head=True)
            for _ in range(sums.WALKS_BEFORE_DERIVING + 2):
                compare_sums(sums.cached_sums(sizes), expected)


@pytest.mark.parametrize("order", [(48, 32, 64), (32, 48, 64), (64, 32, 48)])
def test_a_count_does_not_depend_on_the_counts_before(order: tuple[int, ...]) -> None:
    for n in [*(n for n in order for _ in range(4)), *order]:
        assert pc.count({**LUKE, "entity_emb_size": n}).total == TOTALS[n]


@pytest.mark.parametrize("name", TYPES)
def test_equal_sizes_are_counted_alike_from_polynomials_and_from_weights(name: str) -> None:
    model = pc.load(default_document(name))
    changed = list_equal(model)
    check_order([model.sizes, *(sizes for _, sizes in zip(range(6), changed))])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(set(MODEL_TYPES) - {"granite4_vision"}))  # a number less than its lists have
def test_all_equal_sizes_are_counted_alike_from_polynomials_and_from_weights(name: str) -> None:
    """Sizes that answer every comparison as those of the model do yield the model's polynomials: only the others are
    derived anew, and in both orders.
    """
    model = pc.load(default_document(name))
    for fixed_numbers in (False, True):
        if compiled := sums.derive_polynomials(model.sizes, True, fixed_numbers):
            break
    structure = sums.get_structure(model.sizes, fixed_numbers)
    for sizes in list_equal(model):
        if compiled and sums.get_structure(sizes, fixed_numbers) == structure and compiled.holds(sizes):
            compare_sums(compiled.evaluate(sizes), sums.sum_weights(sizes, head=True))
        else:
            check_order([model.sizes, sizes])


def test_a_sweep_counts_rows_on_both_sides_of_an_equality() -> None:
    model = pc.load({**LUKE, "entity_emb_size": 256})
    for values in ([32, 48, 64], [48, 32, 64], [64, 32, 48]):
        (frame,) = pc.sweep(model, {"d_entity": values})
        assert dict(zip(frame["d_entity"], frame["total"])) == TOTALS
    (frame,) = pc.sweep(
        model, {"d_entity": range(8, 97, 8), "n_heads": [2, 4], "d_head": "48 // n_heads", "d_ff": [48, 96]}
    )
    for row in frame.to_dict("records"):
        changes = {name: int(row[name]) for name in ("d_entity", "n_heads", "d_head", "d_ff")}
        direct = sums.sum_weights(change_sizes(model, changes).sizes, head=True)
        assert row["total"] == sum(direct.components.values())


def test_a_frame_counts_rows_on_both_sides_of_an_equality() -> None:
    values = [32, 48, 64, 48, 32, 64, 48, 48]
    found = pc.count_frame(
        pandas.DataFrame([{**LUKE, "entity_emb_size": n} for n in values]).drop(columns="model_type"), "luke"
    )
    assert found["total"].tolist() == [TOTALS[n] for n in values]


def test_a_formula_refuses_sizes_on_the_other_side_of_an_equality() -> None:
    for n, sign in ((48, "="), (32, "≠")):
        model = pc.load({**LUKE, "entity_emb_size": n})
        formula, numbers = pc.formula(model), sums.list_numbers(model.sizes)
        values = {name: numbers[name] for name in formula.names}
        assert formula.evaluate(**values) == TOTALS[n]
        expected = f"^evaluate: the formula is that of models with d_entity {sign} d_model "
        with pytest.raises(pc.ParamcountError, match=expected):
            formula.evaluate(**{**values, "d_entity": 80 - n})
        assert f"the formulas hold if d_entity {sign} d_model" in pc.explain(model).notes
