"""Quantities as people type them: tokens and bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from paramcount.errors import ParamcountError, describe_value

NUMBER = re.compile(r"(\d{1,18})(?:\.(\d{1,12}))?\s*([a-z]{0,3})", re.IGNORECASE)
# {unit in lower case: factor}
CONTEXT_UNITS = {"": 1, "k": 1024, "m": 1024**2}
TRAINING_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
BYTE_UNITS = {
    f"{letter}{infix}b": base**power
    for power, letter in enumerate("kmgt", start=1)
    for infix, base in (("", 1000), ("i", 1024))
}


def parse_tokens(text: str, *, where: str) -> int:
    """A context length.

    >>> parse_tokens("8192", where="--context"), parse_tokens("8k", where="--context")
    (8192, 8192)

    Raises: ParamcountError for anything that is not a whole number of tokens.
    """
    return parse_quantity(text, CONTEXT_UNITS, where=where, expected="tokens, such as 8192, 8k or 1M")


def parse_training_tokens(text: str, *, where: str) -> int:
    """A number of tokens to train on, in decimal units.

    >>> parse_training_tokens("15T", where="--train-tokens"), parse_training_tokens("1.5B", where="--train-tokens")
    (15000000000000, 1500000000)

    Raises: ParamcountError for anything that is not a whole number of tokens.
    """
    return parse_quantity(text, TRAINING_UNITS, where=where, expected="tokens, such as 15T, 300B or 1000000")


def parse_parameters(text: str, *, where: str) -> int:
    """A number of parameters, in decimal units.

    >>> parse_parameters("3B", where="--total"), parse_parameters("124M", where="--total")
    (3000000000, 124000000)

    Raises: ParamcountError for anything that is not a whole number of parameters.
    """
    return parse_quantity(text, TRAINING_UNITS, where=where, expected="parameters, such as 3B, 124M or 124439808")


def parse_bytes(text: str, *, where: str) -> int:
    """A size of a memory: decimal for GB, binary for GiB.

    >>> parse_bytes("24GB", where="--memory"), parse_bytes("80 GiB", where="--memory")
    (24000000000, 85899345920)

    Raises: ParamcountError for anything else.
    """
    return parse_quantity(text, BYTE_UNITS, where=where, expected="a size such as 24GB or 80GiB")


def parse_quantity(text: str, units: Mapping[str, int], *, where: str, expected: str) -> int:
    """A number with a unit, if that is a whole number of what the unit counts."""
    match = NUMBER.fullmatch(text.strip().replace(",", "").replace("_", ""))
    factor = units.get(match[3].lower()) if match else None
    if match and factor:
        whole, decimals = match[1], match[2] or ""
        quantity, rest = divmod(int(whole + decimals) * factor, 10 ** len(decimals))
        if not rest:
            return int(quantity)
    raise ParamcountError(f"= {describe_value(text)}", where=where, expected=expected)


def parse_limit(text: str, *, where: str) -> int:
    """A number of rows.

    >>> parse_limit("20", where="--limit")
    20

    Raises: ParamcountError for anything but a positive integer.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text)):
        raise ParamcountError(f"= {describe_value(text)}", where=where, expected="a positive integer")
    return int(text)
