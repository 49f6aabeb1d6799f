"""The frozen facts are what the reference implementation says today, for every entry of the zoo."""

from __future__ import annotations

import pytest

from tests.comparison import load_configs, load_reference
from tests.oracle import reference

IDS = [id for id in load_configs() if reference.is_built(id)]


@pytest.mark.parametrize("id", IDS)
def test_the_frozen_reference_is_what_the_implementation_builds(id: str) -> None:
    assert reference.count_reference(reference.build_model(id)) == load_reference()[id]
