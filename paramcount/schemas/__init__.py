"""JSON Schemas of all `--json` outputs, one file per command. They are closed: a field that a schema does not name is
an error."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from paramcount.errors import ParamcountError, find_nearest, quote


def commands() -> list[str]:
    """The commands that have a schema."""
    return sorted(file.name.removesuffix(".json") for file in files(__name__).iterdir() if file.name.endswith(".json"))


def schema_text(command: str) -> str:
    """The JSON Schema of a command's `--json` output, as a string.

    Raises: ParamcountError if the command has no schema.
    """
    names = commands()
    if command not in names:
        expected = f"{', '.join(names[:-1])} or {names[-1]}"
        raise ParamcountError(
            f"no schema for {quote(command)}", expected=expected, nearest=find_nearest(command, names)
        )
    return files(__name__).joinpath(f"{command}.json").read_text(encoding="utf-8")


def schema(command: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a command's `--json` output.

    Raises: ParamcountError if the command has no schema.

    >>> schema("diff")["title"]
    'paramcount diff --json'
    """
    parsed: dict[str, Any] = json.loads(schema_text(command))
    return parsed
