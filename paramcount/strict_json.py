"""JSON from anywhere: an object, no key twice, nothing that is not a number where one stands."""

from __future__ import annotations

import json
from math import isinf
from typing import Any

from paramcount.errors import ParamcountError, printable

LONGEST_NUMBER = 100


def loads(text: str) -> dict[str, Any]:
    """The object in a JSON text. `Infinity` is read, as time_step_limit of state-space models has it; NaN and 1e400 are refused.

    >>> loads('{"hidden_size": 768, "rope_scaling": null}')
    {'hidden_size': 768, 'rope_scaling': None}

    Raises: ParamcountError with the line.
    """
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_int=_int, parse_float=_float, parse_constant=_constant)
    except json.JSONDecodeError as error:
        ended = error.pos >= len(text.rstrip()) and text.strip()
        problem = "ends in the middle" if ended else f"is not JSON: {printable(error.msg, 60)}"
        raise ParamcountError(problem, where=f"line {error.lineno} column {error.colno}", accepted="a JSON object") from None
    except RecursionError:
        raise ParamcountError("is nested too deep", accepted="a JSON object") from None
    if not isinstance(found, dict):
        kind = "an array" if isinstance(found, list) else "a text" if isinstance(found, str) else "a single value"
        raise ParamcountError(f"holds {kind}", accepted="a JSON object")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ParamcountError(f"the key {printable(key, 60)} a second time", accepted="every key once")
            seen.add(key)
    return found


def _int(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ParamcountError(f"a number of {len(text):,} digits", accepted=f"at most {LONGEST_NUMBER}")
    return int(text)


def _float(text: str) -> float:
    value = float(text) if len(text) <= 10 * LONGEST_NUMBER else float("inf")
    if isinf(value):
        raise ParamcountError(f"{printable(text, 40)} is beyond every number", accepted="a number")
    return value


def _constant(text: str) -> float:
    if text == "NaN":
        raise ParamcountError("NaN is no number", accepted="a number")
    return float(text)
