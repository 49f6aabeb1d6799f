"""Which oracle tests run: all, or those of the model types whose proofs are asked for and those of no model type.

`--proofs FILE` names a JSON list of [model type, file of tests]. Tests of one type run in one process, because they
share what the reference has built.
"""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paramcount.zoo as zoo

FOLDER = Path(__file__).parent
HAS_REFERENCE = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))
collect_ignore_glob = [] if HAS_REFERENCE else ["*.py"]


def pytest_report_header() -> str:
    return "" if HAS_REFERENCE else "the oracle tests need pip install torch==2.13.0 transformers==5.23.0"


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.oracle)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proofs", help="JSON file: the [model type, file of tests] to run")
    parser.addoption("--only-types", action="store_true", help="leave out the tests of no model type")


def list_words(values: Any) -> Iterator[str]:
    """The strings among the parameters of a test."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, dict):
        yield from (value for value in values.values() if isinstance(value, str))
    elif isinstance(values, list | tuple):
        for value in values:
            yield from list_words(value)


def find_proofs(item: pytest.Item) -> list[tuple[str, str]]:
    """[(model type, file)] that a test belongs to; none if it is of no model type."""
    from tests.oracle.digests import find_type

    called = getattr(item, "callspec", None)
    words = [word for value in called.params.values() for word in list_words(value)] if called else []
    return sorted({(found, item.path.stem) for word in words if (found := find_type(word))})


def is_of_authors(item: pytest.Item) -> bool:
    """Whether a test is about an entry whose class only its authors have, though its model type is one of transformers:
    tests of their own compare it with a transcription.
    """
    id = item.callspec.params.get("id") if hasattr(item, "callspec") else None
    return id is not None and " of " in zoo.load_entry(id).sizes.reference


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = [item for item in items if item.path.is_relative_to(FOLDER)]
    wanted = config.getoption("--proofs", None)
    pairs = {tuple(pair) for pair in json.loads(Path(wanted).read_text(encoding="utf-8"))} if wanted else None
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in here:
        proofs = find_proofs(item)
        item.user_properties.append(("proofs", proofs))
        item.add_marker(pytest.mark.xdist_group(proofs[0][0] if proofs else item.path.stem))
        if item.path.stem == "test_reference" and is_of_authors(item):
            left_out.append(item)
            continue
        is_wanted = pairs is None or (pairs & {*proofs} if proofs else not config.getoption("--only-types", None))
        (kept if is_wanted else left_out).append(item)
    numbers = Counter(proof for item in kept for proof in find_proofs(item))
    for item in kept:
        item.user_properties.append(("numbers", [numbers[proof] for proof in find_proofs(item)]))
    # The tests of a type stand together, so that each process is done with one before it takes another.
    kept.sort(key=lambda item: next(item.iter_markers("xdist_group")).args[0])
    config.hook.pytest_deselected(items=left_out)
    items[:] = [*(item for item in items if not item.path.is_relative_to(FOLDER)), *kept]
