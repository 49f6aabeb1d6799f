"""A strict parser of JSON objects from untrusted files: no duplicate keys, no NaN, limited depth."""

from __future__ import annotations

import json
import re
from math import isinf
from typing import Any

from paramcount.errors import ParamcountError, describe_value, make_printable, quote

LONGEST_NUMBER = 100
DEEPEST = 100  # levels; Python's own limit depends on its version
TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)  # matches whole strings, which may contain brackets


def parse_json(text: str) -> dict[str, Any]:
    """The object in a JSON text. `Infinity` is valid, because configs of state-space models contain it; NaN is not.

    >>> parse_json('{"hidden_size": 768, "rope_scaling": null}')
    {'hidden_size': 768, 'rope_scaling': None}

    Raises: ParamcountError, with line and column for a syntax error.
    """
    if is_deeper_than(DEEPEST, text):
        raise ParamcountError("is nested too deeply", expected=f"at most {DEEPEST} levels")
    try:
        document = json.loads(
            text,
            object_pairs_hook=_make_object,
            parse_int=_parse_int,
            parse_float=_parse_float,
            parse_constant=_parse_constant,
        )
    except json.JSONDecodeError as error:
        raise describe_syntax_error(text, error) from None
    if not isinstance(document, dict):
        raise ParamcountError(f"contains {describe_value(document)}", expected="a JSON object")
    return document


def describe_syntax_error(text: str, error: json.JSONDecodeError) -> ParamcountError:
    """The error for invalid JSON. Its message is the same in all versions of Python."""
    at, problem = error.pos, make_printable(error.msg, 60)
    before = text[:at].rstrip()
    if not text.strip():
        return ParamcountError("is empty", expected="a JSON object")
    if at >= len(text.rstrip()) and text.strip():
        problem = "unexpected end of file"
    elif error.msg.startswith("Illegal trailing comma") or (text[at : at + 1] in ("}", "]") and before.endswith(",")):
        at = at if text[at] == "," else len(before) - 1
        problem = "trailing comma"
    problem = problem[:1].lower() + problem[1:]
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return ParamcountError(f"invalid JSON: {problem}", where=f"line {line} column {column}", expected="a JSON object")


def is_deeper_than(levels: int, text: str) -> bool:
    """Whether a JSON text is nested deeper than `levels`.

    >>> is_deeper_than(2, '{"a": [1, "[["]}'), is_deeper_than(2, '{"a": [[')
    (False, True)
    """
    if text.count("[") + text.count("{") <= levels:
        return False
    depth = 0
    for token in TOKENS.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
                if depth > levels:
                    return True
            case "]" | "}":
                depth -= 1
    return False


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys: set[str] = set()
        for key, _ in pairs:
            if key in keys:
                raise ParamcountError(f"duplicate key {quote(key)}")
            keys.add(key)
    return members


def _parse_int(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ParamcountError(f"a number of {len(text):,} digits", expected=f"at most {LONGEST_NUMBER}")
    return int(text)


def _parse_float(text: str) -> float:
    value = float(text) if len(text) <= 10 * LONGEST_NUMBER else float("inf")
    if isinf(value):
        raise ParamcountError(f"{make_printable(text, 40)} is too large", expected="a finite number")
    return value


def _parse_constant(text: str) -> float:
    if text == "NaN":
        raise ParamcountError("NaN is not allowed", expected="a finite number")
    return float(text)
