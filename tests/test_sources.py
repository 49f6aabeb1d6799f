"""The digest of a definition changes with what it does and with what it names, and with nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import sources
from tests.sources import Symbol, dump, list_references, read_piece, resolve

SOURCE = '''
from paramcount.other import factor as times

TABLE = {"bert": [1], "gpt2, sliding": [2], "usual": [3]}
TYPES = ["bert", "usual"]


def scale(x: int) -> int:
    """Twice."""
    return x * times
'''


@pytest.fixture(autouse=True)
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    (tmp_path / "paramcount").mkdir()
    (tmp_path / "paramcount" / "__init__.py").write_text("from paramcount.own import scale as widen\n")
    (tmp_path / "paramcount" / "names.json").write_text('{"own": ["TABLE", "TYPES"], "other": ["factor"]}')
    (tmp_path / "paramcount" / "other.py").write_text("factor = 2\n")
    write(tmp_path, SOURCE)
    yield
    forget()


def write(folder: Path, text: str) -> None:
    (folder / "paramcount" / "own.py").write_text(text)
    forget()


def forget() -> None:
    sources.parse_module.cache_clear()
    sources.find_file.cache_clear()
    sources.list_homes.cache_clear()


def hash_source(name: str) -> str:
    return read_piece(Symbol("paramcount.own", name), lambda node: False).digest


@pytest.mark.parametrize(("old", "new"), [("x * times", "x + times"), ("x: int", "x: float"), ("scale(x", "scale(y")])
def test_what_a_function_does_changes_its_digest(tmp_path: Path, old: str, new: str) -> None:
    before = hash_source("scale")
    write(tmp_path, SOURCE.replace(old, new))
    assert hash_source("scale") != before


def test_a_name_is_found_where_it_is_defined() -> None:
    assert resolve(Symbol("paramcount", "widen")) == ("paramcount.own", "scale")
    assert resolve(Symbol("paramcount", "other")) == ("paramcount.other", "")
    assert resolve(Symbol("paramcount", "TYPES")) == ("paramcount.own", "TYPES")
    assert resolve(Symbol("paramcount.own", "print")) is None
    (node,) = sources.parse_module("paramcount.own").definitions["scale"]  # type: ignore[union-attr]
    assert set(list_references(node, "paramcount.own")) == {("paramcount.other", "factor")}


def test_entries_of_a_table_belong_to_their_owners() -> None:
    owners = {"bert": "bert", "gpt2, sliding": "gpt2"}
    table = read_piece(Symbol("paramcount.own", "TABLE"), lambda node: False, owners.get)
    assert set(table.by_owner) == {"bert", "gpt2"}
    rest, _ = sources.cut(ast.parse('{"usual": [3]}', mode="eval").body, lambda node: False, owners.get)
    assert dump(rest) in dump(sources.cut(ast.parse(SOURCE), lambda node: False, owners.get)[0])
    assert set(read_piece(Symbol("paramcount.own", "TYPES"), lambda node: False, owners.get).by_owner) == {"bert"}
