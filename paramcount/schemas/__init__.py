"""JSON Schemas of everything that `--json` prints, one file per command. They are closed: a field that they do not name is an error."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from paramcount.errors import ParamcountError, find_nearest, quote


def commands() -> list[str]:
    """The commands that have a schema."""
    return sorted(file.name.removesuffix(".json") for file in files(__name__).iterdir() if file.name.endswith(".json"))


def schema_text(command: str) -> str:
    """The schema of a command's JSON, as text.

    Raises: ParamcountError if it has none.
    """
    known = commands()
    if command not in known:
        raise ParamcountError(f"no schema is called {quote(command)}", expected=", ".join(known), nearest=find_nearest(command, known))
    return files(__name__).joinpath(f"{command}.json").read_text(encoding="utf-8")


def schema(command: str) -> dict[str, Any]:
    """The schema of a command's JSON (JSON Schema, draft 2020-12).

    >>> schema("diff")["title"]
    'paramcount diff --json'
    """
    found: dict[str, Any] = json.loads(schema_text(command))
    return found
