"""JSON Schemas of all `--json` outputs, one file per command, and of the YAML files of the zoo (`entry`).

Schemas are closed: an unlisted field is invalid.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

from paramcount.errors import ParamcountError, find_nearest, join_words, quote

ENTRY = "entry"  # the YAML files of the zoo; the other schemas are of commands


def list_schemas() -> list[str]:
    """The commands that have a schema."""
    names = (file.name for file in files(__name__).iterdir() if re.fullmatch(r"\w+\.json", file.name))
    return sorted(name.removesuffix(".json") for name in names)


def read_schema_text(command: str) -> str:
    """The JSON Schema of a command's `--json` output, or of a zoo entry ("entry"), as a string.

    Raises: ParamcountError if the command has no schema.
    """
    if command == ENTRY:
        return files(__name__).joinpath("entry.schema.json").read_text(encoding="utf-8")
    names = [*list_schemas(), ENTRY]
    if command not in names:
        raise ParamcountError(
            f"no schema for {quote(command)}", expected=join_words(names), nearest=find_nearest(command, names)
        )
    return files(__name__).joinpath(f"{command}.json").read_text(encoding="utf-8")


def read_schema(command: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a command's `--json` output, or of a zoo entry ("entry").

    Raises: ParamcountError if the command has no schema.

    >>> read_schema("diff")["title"]
    'paramcount diff --json'
    """
    parsed: dict[str, Any] = json.loads(read_schema_text(command))
    return parsed
