"""A model that the reference only has to be called otherwise for is saved like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle import flaws, test_checkpoints

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", ["t5gemma"])
def test_a_model_that_is_called_otherwise_is_saved_under_the_declared_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flaws, "has_flaw", lambda model: False)
    test_checkpoints.test_every_architecture_is_saved_under_the_declared_names(name, tmp_path)
