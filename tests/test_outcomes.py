"""The three answers for runs that worked or ran out of memory, over all engines, as the guide on accuracy has them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import paramcount as pc
from paramcount.costs.devices import DOES_NOT_FIT, FITS, TOO_CLOSE
from tests.logged import ENGINES, LoggedFigure, load_logged, read_logged
from tests.test_logged_vllm import measure as measure_vllm

GUIDE = Path(pc.__file__).parent / "docs" / "accuracy.md"


def judge(engine: str, row: LoggedFigure) -> str:
    if engine == "vllm":
        fit = measure_vllm(row.model, json.dumps(row.arguments)).fit
    elif engine == "training":
        trained = pc.training(load_logged(row.model), **row.arguments).fit
        assert trained is not None
        return trained.verdict
    else:
        fit = pc.memory(load_logged(row.model), engine=engine.replace("_", "."), **row.arguments).fit
    assert fit is not None
    return fit.verdict


@pytest.mark.exhaustive
def test_the_guide_has_the_answers_for_all_runs() -> None:
    found: Counter[tuple[bool, str]] = Counter()
    for engine in ENGINES:
        rows = [row for row in read_logged(engine).values() if row.kind == "outcome"]
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
