"""Any config.json of every supported model type: counted and built alike, tensor by tensor, or refused by both.

EXAMPLES=200 looks longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.model_types import MODEL_TYPES, default_document
from tests.oracle.differential import EXAMPLES, can_be_built, disturb, find_differences, make_document

# A failing config is small as it is: making it smaller takes minutes.
slowly = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(MODEL_TYPES))
def test_the_default_config_is_counted_as_the_reference_builds_it(name: str) -> None:
    facts = MODEL_TYPES[name]
    document = default_document(name)
    assert find_differences(document, facts.cls, run=False, by_name=False) == []


@pytest.mark.parametrize("name", sorted(MODEL_TYPES))
@slowly
@given(data=st.data())
def test_any_config_is_counted_as_the_reference_builds_it_or_rejected_by_both(name: str, data: st.DataObject) -> None:
    document = make_document(name, lambda options: data.draw(st.sampled_from(options)), MODEL_TYPES[name].vary)
    cls_name = document.get("architectures", [MODEL_TYPES[name].cls])[0]
    assert find_differences(document, cls_name) == []


VERDICTS = ("we refuse ", "the reference refuses ", "we count what the reference cannot run")


@pytest.mark.parametrize("name", sorted(name for name in MODEL_TYPES if can_be_built(name)))
@slowly
@given(data=st.data())
def test_what_both_build_is_equal_in_spite_of_equal_or_odd_sizes_nulls_and_other_names(
    name: str, data: st.DataObject
) -> None:
    """Whether a config is refused may differ here: a size of 0, a part that is built, though no text reaches it."""

    def choose(options: Sequence[Any]) -> Any:
        return data.draw(st.sampled_from(options))

    document = disturb(make_document(name, choose, MODEL_TYPES[name].vary), choose)
    cls_name = document.get("architectures", [MODEL_TYPES[name].cls])[0]
    found = find_differences(document, cls_name, run=False)
    assert [text for text in found if not text.startswith(VERDICTS)] == []
