"""The first line of `plan` next to what publishers recommend."""

from __future__ import annotations

from paramcount.zoo import list_ids
from tests.recommended import list_comparisons


def test_most_plans_are_what_publishers_recommend() -> None:
    comparisons = list_comparisons()
    assert len({it.recommendation.model for it in comparisons} & set(list_ids())) == len(comparisons) >= 20
    assert sum(it.agrees for it in comparisons) >= 0.7 * len(comparisons)


def test_no_recommendation_is_called_impossible() -> None:
    assert [it.recommendation.model for it in list_comparisons() if it.fit.verdict == "does not fit"] == []


def test_a_plan_has_at_most_the_next_larger_number_of_gpus() -> None:
    assert [it.recommendation for it in list_comparisons() if it.planned.devices > 2 * it.recommendation.devices] == []


def test_every_difference_has_a_reason() -> None:
    for it in list_comparisons():
        assert bool(it.reason) == (it.planned.devices != it.recommendation.devices)
        if it.planned.devices > it.recommendation.devices:
            assert it.fit.verdict == "too close to call"
        else:
            assert it.fit.verdict == "fits"
