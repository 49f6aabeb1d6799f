"""The examples in docstrings print what they show."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

from tests.sources import ROOT

FILES = [path.relative_to(ROOT) for path in sorted(ROOT.glob("paramcount/**/*.py")) if ">>>" in path.read_text("utf-8")]
MODULES = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in FILES]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_print_what_they_show(module: str) -> None:
    found = doctest.testmod(import_module(module))
    assert found.attempted and not found.failed
