"""The JSON Schemas that ship with the package: they are closed, and what every command prints is valid."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paramcount.cli.commands import COMMANDS
from paramcount.counting import SCHEMA_VERSION
from paramcount.schemas import ENTRY, list_schemas, read_schema_text
from tests.json_outputs import command_lines
from tests.refusing import assert_one_line
from tests.running import Runner

jsonschema = pytest.importorskip("jsonschema")


def read_schema(command: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(read_schema_text(command))
    return schema


WITHOUT_JSON = {"add", "docs", "draw", "explore", "export", "help", "map", "report", "schema"}


def make_validators() -> dict[str, Any]:
    return {name: jsonschema.Draft202012Validator(read_schema(name)) for name in list_schemas()}


SCALARS = {"integer", "number", "string", "boolean"}


def list_objects(node: Any) -> Iterator[dict[str, Any]]:
    """Every schema of an object inside of one."""
    if isinstance(node, dict):
        if "properties" in node:
            yield node
        for inner in node.values():
            yield from list_objects(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from list_objects(inner)


def test_every_command_that_prints_json_has_a_schema() -> None:
    assert set(list_schemas()) == set(COMMANDS) - WITHOUT_JSON


@pytest.mark.parametrize("name", list_schemas())
def test_every_schema_is_valid_closed_and_current(name: str) -> None:
    document = read_schema(name)
    jsonschema.Draft202012Validator.check_schema(document)
    open_ = [
        found["additionalProperties"] for found in list_objects(document) if found.get("additionalProperties", True)
    ]
    assert [rule for rule in open_ if rule is True or not set(rule["type"]) <= SCALARS] == []  # others hold options
    for top in document.get("$defs", {"": document}).values():
        assert top["properties"]["schema_version"] == {"const": SCHEMA_VERSION}


def test_the_json_of_every_command_is_valid(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent.parent)
    checks, seen = make_validators(), set()
    for line in command_lines(tmp_path):
        found = run(*line, "--json")
        assert found.out, (line, found.err)
        data = json.loads(found.out)
        errors = [
            f"{line}: {error.json_path}: {error.message[:200]}"
            for error in list_leaf_errors(checks[line[0]].iter_errors(data))
        ]
        assert errors == []
        seen.add(line[0])
    assert seen == set(list_schemas())


def list_leaf_errors(errors: Any) -> Iterator[Any]:
    """Errors, those of an `anyOf` by what is wrong in the alternative that fits best."""
    for error in errors:
        yield jsonschema.exceptions.best_match([error])


def test_an_unlisted_field_and_a_number_as_a_string_are_invalid(run: Runner) -> None:
    checks = make_validators()
    data = json.loads(run("show", "gpt2-small", "--json").out)
    assert checks["show"].is_valid(data)
    for wrong in ({"surplus": 1}, {"total": "124,439,808"}, {"schema_version": 1}):
        assert not checks["show"].is_valid(copy.deepcopy(data) | wrong)


def test_the_command_prints_one_schema_or_lists_all(run: Runner) -> None:
    assert run("schema").out.split() == [*list_schemas(), ENTRY]
    assert json.loads(run("schema", "diff").out) == read_schema("diff")
    refused = run("schema", "dif")
    assert refused.code == 2
    assert_one_line(refused.err.strip())
    assert "diff" in refused.err
