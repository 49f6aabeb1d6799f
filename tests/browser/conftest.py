"""One browser and one page of some models for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import paramcount as pc
from tests.browser.chromium import Browser, run_browser
from tests.browser.exploring import MODELS


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with run_browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="session")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of `paramcount explore` about some models."""
    path = tmp_path_factory.mktemp("explored") / "explore.html"
    path.write_text(pc.explore_page(MODELS), encoding="utf-8")
    return path
