"""A test in batches sees every case, and each failing case is named whatever the others do."""

from __future__ import annotations

import pytest

from tests.batches import in_batches
from tests.structures import COVERING, find_covering


def test_every_failing_case_of_a_batch_is_named_and_every_case_runs() -> None:
    calls = []

    @in_batches(("a", "b"), [(1, 1), (2, 3), (4, 4), (5, 6)], ids=lambda n: f"<{n}>")
    def check(a: int, b: int, sign: int) -> None:
        calls.append((a, b, sign))
        assert a == b
        if a == 4:
            pytest.fail("four")

    ((batch,),) = (mark.args[1] for mark in check.pytestmark)  # type: ignore[attr-defined]
    with pytest.raises(BaseExceptionGroup, match="3 of 4 cases failed") as caught:
        check(batch=batch.values[0], sign=-1)
    assert calls == [(1, 1, -1), (2, 3, -1), (4, 4, -1), (5, 6, -1)]
    assert [error.__notes__ for error in caught.value.exceptions] == [
        ["case: <2>-<3>"],
        ["case: <4>-<4>"],
        ["case: <5>-<6>"],
    ]


@pytest.mark.exhaustive
def test_the_models_of_the_default_run_have_all_operations() -> None:
    assert COVERING.read_text(encoding="utf-8").split() == find_covering(), "python -m tests.structures"
