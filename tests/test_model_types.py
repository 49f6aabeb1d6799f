"""Every supported model type: its default config and the frozen cases of the differential test, tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import paramcount as pc
from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.counting.sum_weights import cached_sums, sum_weights
from paramcount.huggingface.config import read_config
from tests.batches import in_batches
from tests.cases import hash_shapes, load_cases
from tests.model_types import MODEL_TYPES, default_document
from tests.oracle.differential import count_document
from tests.structures import keep_every

CASES = load_cases()
REMOTE = {
    name for name in ARCHITECTURES if " of " in architecture(name).reference
}  # modelling code that no library ships


def test_every_architecture_has_reference_figures() -> None:
    assert set(ARCHITECTURES) - set(MODEL_TYPES) - REMOTE == set()
    assert len(MODEL_TYPES) >= 130


@in_batches("name", sorted(MODEL_TYPES), size=60)
def test_the_default_config_has_the_total_of_the_reference(name: str) -> None:
    facts = MODEL_TYPES[name]
    count = pc.count(default_document(name))
    assert count.total + sum(count.unreachable.values()) == facts.total
    assert count.reference == facts.cls


@in_batches(
    ("name", "case"),
    [pytest.param(name, case, id=f"{name}-{i}") for name, cases in CASES.items() for i, case in enumerate(cases)],
    size=60,
)
def test_a_config_is_counted_or_rejected_like_the_reference_does(name: str, case: dict[str, Any]) -> None:
    if case.get("refused"):
        with pytest.raises(pc.ParamcountError):
            pc.count(case["config"])
        return
    count, parameters, buffers = count_document(case["config"])
    assert {what: getattr(count, what) for what in ("total", "embedding", "buffers")} == {
        what: case[what] for what in ("total", "embedding", "buffers")
    }
    assert count.lm_head == case.get("lm_head", count.lm_head)
    assert (hash_shapes(parameters, case["prefix"]), hash_shapes(buffers, case["prefix"])) == (
        case["tensors"],
        case["buffer_tensors"],
    )


@in_batches("name", keep_every(20, CASES), size=40)
def test_sums_from_cached_polynomials_equal_sums_over_the_weights(name: str) -> None:
    """The third time a structure comes, and ever after."""
    for case in CASES[name]:
        if not case.get("refused"):
            model = read_config(case["config"])
            walked_sums = sum_weights(model.sizes, model.reading.head)
            for _ in range(4):
                found = cached_sums(model.sizes, model.reading.head)
                assert drop_zeros(found.components) == drop_zeros(walked_sums.components)
                active = {**found.components, **found.active}
                assert drop_zeros(active) == drop_zeros(walked_sums.active)
                assert drop_zeros(found.details) == drop_zeros(walked_sums.details)
                assert drop_zeros(found.parts) == drop_zeros(walked_sums.parts)
                assert found.excluded == walked_sums.excluded
                assert (found.tied, found.active_slack) == (walked_sums.tied, walked_sums.active_slack)


def drop_zeros(sums: Mapping[str, int]) -> dict[str, int]:
    return {name: n for name, n in sums.items() if n}


def test_frozen_cases_cover_every_model_type() -> None:
    assert set(CASES) == set(MODEL_TYPES)
    assert {name for name, cases in CASES.items() if not any("refused" not in case for case in cases)} == set()
