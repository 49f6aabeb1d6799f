"""A test in batches sees every case, and each failing case is named whatever the others do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.batches import in_batches
from tests.structures import COVERING, find_covering

CASES = [1, 2, 3, pytest.param(4, id="four"), pytest.param(5, marks=pytest.mark.exhaustive)]


def list_batches(test: Any) -> list[Any]:
    (mark,) = test.pytestmark
    assert mark.args[0] == "batch"
    return list(mark.args[1])


def test_cases_with_equal_marks_share_batches() -> None:
    @in_batches("n", CASES, size=3)
    def check(n: int, tmp_path: object) -> None: ...

    batches = list_batches(check)
    assert [batch.id for batch in batches] == ["1 to 3", "four to four", "5 to 5"]
    assert [[mark.name for mark in batch.marks] for batch in batches] == [[], [], ["exhaustive"]]
    assert [batch.values[0] for batch in batches] == [
        [("1", (1,)), ("2", (2,)), ("3", (3,))],
        [("four", (4,))],
        [("5", (5,))],
    ]


def test_every_failing_case_of_a_batch_is_named_and_every_case_runs() -> None:
    calls = []

    @in_batches(("a", "b"), [(1, 1), (2, 3), (4, 4), (5, 6)], ids=lambda n: f"<{n}>")
    def check(a: int, b: int, sign: int) -> None:
        calls.append((a, b, sign))
        assert a == b
        if a == 4:
            pytest.fail("four")

    (batch,) = list_batches(check)
    with pytest.raises(BaseExceptionGroup, match="3 of 4 cases failed") as caught:
        check(batch=batch.values[0], sign=-1)
    assert calls == [(1, 1, -1), (2, 3, -1), (4, 4, -1), (5, 6, -1)]
    assert [error.__notes__ for error in caught.value.exceptions] == [
        ["case: <2>-<3>"],
        ["case: <4>-<4>"],
        ["case: <5>-<6>"],
    ]


def test_a_case_may_not_skip_the_others() -> None:
    @in_batches("n", [1, 2])
    def check(n: int) -> None:
        pytest.skip("never")

    with pytest.raises(TypeError, match="1: a case of a batch must not skip the others"):
        check(batch=list_batches(check)[0].values[0])


@pytest.mark.parametrize("sign", [1, -1])
@in_batches("n", [1, 2, 3], size=2)
def test_other_parameters_and_fixtures_are_passed_on(
    n: int, sign: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert n * sign in (1, 2, 3, -1, -2, -3)
    assert isinstance(tmp_path_factory, pytest.TempPathFactory)


@pytest.mark.exhaustive
def test_the_models_of_the_default_run_have_all_operations() -> None:
    assert COVERING.read_text(encoding="utf-8").split() == find_covering(), "python -m tests.structures"
