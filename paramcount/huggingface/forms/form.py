"""What a form is: how it is recognised, and how its keys become those of a config.json."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, describe_value

Document = Mapping[str, Any]


class ConfigForm(NamedTuple):
    """A form in which people keep the sizes of models."""

    name: str  # as in "read as Meta's params.json"
    matches: Callable[[Document], bool]
    translate: Callable[[Document], Translation]
    keys: Mapping[str, str] = {}  # {key of the form: key of a config.json with the same value}

    def rename(self, text: str) -> str:
        """A message with the keys that the file has.

        >>> ConfigForm("", bool, Translation, {"dim": "hidden_size"}).rename("hidden_size = 0")
        'dim = 0'
        """
        for key, name in self.keys.items():
            text = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", key, text)
        return text

    def rename_error(self, error: ParamcountError) -> ParamcountError:
        """The same error with the keys that the file has."""
        where, found, expected = (self.rename(text) for text in (error.where, error.found, error.expected))
        return error.replace(where=where, found=found, expected=expected)


class Translation(NamedTuple):
    """What a file says, as a config.json would."""

    document: dict[str, Any]
    warnings: tuple[str, ...] = ()
    note: str = ""  # instead of the name of the form


def rename_keys(document: Document, keys: Mapping[str, str], unused: Iterable[str] = ()) -> dict[str, Any]:
    """The document with the names of a config.json. Other keys stay, so that they are reported if they look like sizes.

    >>> rename_keys({"dim": 8, "seed": 1, "x": 2}, {"dim": "hidden_size"}, ["seed"])
    {'hidden_size': 8, 'x': 2}
    """
    dropped = set(unused)
    return {keys.get(key, key): value for key, value in document.items() if key not in dropped}


def require(document: Document, *keys: str) -> None:
    """Raises: ParamcountError for the first of these keys that is missing, because the form has no default for it."""
    for key in keys:
        if document.get(key) is None:
            raise ParamcountError("is missing", where=key, expected="a number; the form has no default")


def get_positive(document: Document, key: str, default: int | None = None) -> int:
    """A positive integer, from which another size is derived."""
    value = document.get(key, default)
    if value is None and default is not None:
        return default
    if type(value) is not int or value < 1:
        problem = "is missing" if value is None else f"= {describe_value(value)}"
        raise ParamcountError(problem, where=key, expected="a positive integer")
    return value


def get_number(document: Document, key: str, default: float) -> float:
    """A positive number, such as a factor."""
    value = document.get(key)
    if value is None:
        return default
    if type(value) not in (int, float) or not 0 < value < 1e6:
        raise ParamcountError(f"= {describe_value(value)}", where=key, expected="a positive number")
    return float(value)


def get_block(document: Document, key: str) -> Document:
    """A block of the document; empty if it is missing."""
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ParamcountError(f"= {describe_value(value)}", where=key, expected="a JSON object")
    return value
