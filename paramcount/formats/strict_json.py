"""Strict JSON objects from untrusted files: no duplicate keys, no NaN, limited depth."""

from __future__ import annotations

import json
import re
from math import isinf
from typing import Any

from paramcount.errors import ParamcountError, make_printable

LONGEST_NUMBER = 100
DEEPEST = 100  # levels; what Python itself takes differs from version to version
TOKENS = re.compile(
    r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL
)  # strings whole, so that brackets in them do not count


def parse_json(text: str) -> dict[str, Any]:
    """The object in a JSON text. `Infinity` is valid (state-space models use it in time_step_limit); NaN and 1e400 are not.

    >>> parse_json('{"hidden_size": 768, "rope_scaling": null}')
    {'hidden_size': 768, 'rope_scaling': None}

    Raises: ParamcountError with the line.
    """
    if is_deeper_than(DEEPEST, text):
        raise ParamcountError("is nested too deep", expected=f"at most {DEEPEST} levels")
    try:
        found = json.loads(
            text, object_pairs_hook=_object, parse_int=_int, parse_float=_float, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        raise describe_syntax_error(text, error) from None
    if not isinstance(found, dict):
        kind = "an array" if isinstance(found, list) else "a text" if isinstance(found, str) else "a single value"
        raise ParamcountError(f"holds {kind}", expected="a JSON object")
    return found


def describe_syntax_error(text: str, error: json.JSONDecodeError) -> ParamcountError:
    """The error for invalid JSON, with the same text on every Python version; 3.13 added a message for trailing commas."""
    at, problem = error.pos, f"is not JSON: {make_printable(error.msg, 60)}"
    before = text[:at].rstrip()
    if at >= len(text.rstrip()) and text.strip():
        problem = "ends in the middle"
    elif error.msg.startswith("Illegal trailing comma") or (text[at : at + 1] in ("}", "]") and before.endswith(",")):
        at = at if text[at] == "," else len(before) - 1
        problem = "is not JSON: trailing comma"
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return ParamcountError(problem, where=f"line {line} column {column}", expected="a JSON object")


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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ParamcountError(f"the key {make_printable(key, 60)} a second time", expected="every key once")
            seen.add(key)
    return found


def _int(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ParamcountError(f"a number of {len(text):,} digits", expected=f"at most {LONGEST_NUMBER}")
    return int(text)


def _float(text: str) -> float:
    value = float(text) if len(text) <= 10 * LONGEST_NUMBER else float("inf")
    if isinf(value):
        raise ParamcountError(f"{make_printable(text, 40)} is too large for a number", expected="a number")
    return value


def _constant(text: str) -> float:
    if text == "NaN":
        raise ParamcountError("NaN is no number", expected="a number")
    return float(text)
