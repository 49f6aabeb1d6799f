"""JSON Schemas of all `--json` outputs, one file per command. They are closed: an unlisted field is invalid.

That of the YAML files of the zoo is made from the architectures: `paramcount.zoo.json_schema`.
"""

from __future__ import annotations

import re
from importlib.resources import files

from paramcount.errors import ParamcountError, find_nearest, join_words, quote

ENTRY = "entry"  # the name of the schema of YAML files


def list_schemas() -> list[str]:
    """The commands that have a schema."""
    names = (file.name for file in files(__name__).iterdir() if re.fullmatch(r"\w+\.json", file.name))
    return sorted(name.removesuffix(".json") for name in names)


def read_schema_text(command: str) -> str:
    """The JSON Schema of a command's `--json` output as a string.

    Raises: ParamcountError if the command has no schema.
    """
    names = list_schemas()
    if command not in names:
        raise ParamcountError(
            f"no schema for {quote(command)}",
            expected=join_words([*names, ENTRY]),
            nearest=find_nearest(command, [*names, ENTRY]),
        )
    return files(__name__).joinpath(f"{command}.json").read_text(encoding="utf-8")
