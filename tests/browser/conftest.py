"""A browser for the tests of each file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.chromium import Browser, run_browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with run_browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser
