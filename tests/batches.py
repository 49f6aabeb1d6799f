"""Run one test on many cases: one item of pytest per batch, because an item takes longer than most cases."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

Test = Callable[..., None]
Case = tuple[str, tuple[Any, ...]]  # its id, its values


def in_batches(
    names: str | Sequence[str],
    cases: Iterable[Any],
    *,
    ids: Callable[[Any], object] | None = None,
    size: int = 40,
    grouped: bool = False,
) -> Callable[[Test], Test]:
    """Parametrize a test like `pytest.mark.parametrize`, with up to `size` cases per item.

    All cases of a batch run, and every failure is reported with the id of its case. The cases of a batch share their
    fixtures. Marked cases, such as exhaustive ones, have batches of their own. `grouped`: the tests of a module with
    the same cases run batch by batch, so that they can share a small cache.
    """
    arguments = (names,) if isinstance(names, str) else tuple(names)
    groups: dict[str, tuple[Collection[Any], list[Case]]] = {}
    for case in cases:
        marks: Collection[Any] = ()
        id = None
        if isinstance(case, ParameterSet):
            values, marks, id = case.values, case.marks, case.id
        else:
            values = (case,) if len(arguments) == 1 else tuple(case)
        if id is None:
            id = "-".join(str(ids(value) if ids else value) for value in values)
        groups.setdefault(str(marks), (marks, []))[1].append((str(id), tuple(values)))
    batches = [
        pytest.param(batch, marks=marks, id=f"{batch[0][0]} to {batch[-1][0]}")
        for marks, group in groups.values()
        for batch in (group[start : start + size] for start in range(0, len(group), size))
    ]

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run_batch(*, batch: list[Case], **fixtures: Any) -> None:
            failures: list[BaseException] = []
            for id, values in batch:
                try:
                    test(**dict(zip(arguments, values, strict=True)), **fixtures)
                except pytest.skip.Exception:
                    raise TypeError(f"{id}: a case of a batch must not skip the others") from None
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"case: {id}")
                    failures.append(error)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(batch)} cases failed", failures)

        signature = inspect.signature(test)
        others = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        batch = inspect.Parameter("batch", inspect.Parameter.KEYWORD_ONLY)
        others = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in others]
        run_batch.__signature__ = signature.replace(parameters=[batch, *others])  # type: ignore[attr-defined]
        del run_batch.__wrapped__
        parametrized: Test = pytest.mark.parametrize("batch", batches, scope="module" if grouped else None)(run_batch)
        return parametrized

    return decorate
