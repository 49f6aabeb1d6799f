"""The frozen facts are what the reference implementation says today, for every entry of the zoo."""

from __future__ import annotations

import json

import pytest

from paramcount import zoo
from tests.oracle import reference

pytestmark = pytest.mark.oracle
pytest.importorskip("torch", reason="the oracle tests need torch: pip install torch==2.13.0")
pytest.importorskip("transformers", reason="the oracle tests need transformers: pip install transformers==5.23.0")

IDS = [
    id
    for id in zoo.list_ids()
    if (zoo.load_entry(id).architecture or reference.HAND_WRITTEN[0]) not in reference.HAND_WRITTEN
]
FROZEN = json.loads(reference.FROZEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("id", IDS)
def test_the_frozen_reference_is_what_the_implementation_builds(id: str) -> None:
    model = zoo.load_entry(id)
    assert reference.count_reference(str(model.architecture), model.sizes) == FROZEN[id]
