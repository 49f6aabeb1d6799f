"""JSON read piece by piece: what a hostile text holds is refused before it takes memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecodeError, JSONDecoder
from typing import TypeVar

from paramcount.errors import ParamcountError, quote
from paramcount.formats.tensor_entries import MOST_TENSORS

T = TypeVar("T")

MOST_MEMBERS = MOST_TENSORS
BLANKS = re.compile(r"[ \t\n\r]*")
NEXT = re.compile(r"[ \t\n\r]*([,}])[ \t\n\r]*")
HALVES = re.compile("[\ud800-\udfff]")
DECODER = JSONDecoder()


def parse_members(
    text: str, at: int, read: Callable[[str, int], tuple[T, int]], usual: Callable[[int], tuple[str, T, int] | None] | None = None
) -> tuple[dict[str, T], int]:
    """The members of the JSON object that begins at `at`, each value read by `read(name, at)`, and where the object ends.

    `usual(at)` may read a whole member at once, name, value and where it ends, where it is written as writers write it; it takes
    nothing that name by name would not be read alike.

    >>> parse_members('{"a": "x", "b": "y"}', 0, lambda name, at: parse_string('{"a": "x", "b": "y"}', at))
    ({'a': 'x', 'b': 'y'}, 20)

    Raises: ParamcountError where it is no JSON, has more members than MOST_MEMBERS, a name twice or one that is not printable.
    """
    found: dict[str, T] = {}
    at = skip_blanks(text, expect_mark(text, at, "{"))
    if text[at : at + 1] == "}":
        return found, at + 1
    while True:
        whole = usual(at) if usual else None
        name, at = (whole[0], at) if whole else parse_string(text, at)
        if name in found:
            raise ParamcountError(f"the name {quote(name)} a second time", expected="every name once")
        if not name.isprintable():
            raise ParamcountError(f"the name {quote(name)}", expected="names of printable characters")
        if len(found) == MOST_MEMBERS:
            raise ParamcountError(f"more than {MOST_MEMBERS:,} entries", expected=f"at most {MOST_MEMBERS:,}")
        if whole:
            _, found[name], at = whole
        else:
            found[name], at = read(name, skip_blanks(text, expect_mark(text, at, ":")))
        behind = NEXT.match(text, at)
        if behind is None:
            raise _not_json(text, skip_blanks(text, at), ",")
        if behind[1] == "}":
            return found, behind.end(1)
        at = behind.end()


def skip_blanks(text: str, at: int) -> int:
    """Where the text goes on behind blanks."""
    blanks = BLANKS.match(text, at)
    return blanks.end() if blanks else at


def expect_mark(text: str, at: int, expected: str) -> int:
    """Where the text goes on behind a mark that must stand here."""
    at = skip_blanks(text, at) if at else 0  # a document begins with its brace
    if text[at : at + 1] != expected:
        raise _not_json(text, at, expected)
    return at + 1


def parse_string(text: str, at: int) -> tuple[str, int]:
    """The text in quotes that begins at `at`, and where it ends."""
    if text[at : at + 1] != '"':
        raise _not_json(text, at, "a text in quotes")
    try:
        found: str
        found, at = DECODER.raw_decode(text, at)
    except JSONDecodeError as error:
        raise _not_json(text, error.pos, "a text in quotes") from None
    if HALVES.search(found):
        raise ParamcountError(f"{quote(found)} holds half a character", expected="Unicode")
    return found, at


def expect_end(text: str, at: int) -> None:
    """Raises: ParamcountError where anything but blanks stands behind the document's object."""
    at = skip_blanks(text, at)
    if at < len(text):
        raise ParamcountError(f"goes on at character {at:,}", expected="blanks behind the JSON object")


def _not_json(text: str, at: int, expected: str) -> ParamcountError:
    found = f"is not JSON at character {at:,}" if at < len(text) else "ends in the middle"
    return ParamcountError(found, expected=expected)
