"""Quantities as people type them: tokens and bytes."""

from __future__ import annotations

import re

from paramcount.errors import ParamcountError, describe_value

TOKENS = re.compile(r"(\d{1,12})(?:\.(\d{1,6}))?([kKmM]?)")
BYTES = re.compile(r"(\d{1,9})(?:\.(\d{1,6}))?\s*([KMGT]i?B)", re.IGNORECASE)
BYTE_UNITS = {
    f"{letter}{infix}b": base**power
    for power, letter in enumerate("kmgt", start=1)
    for infix, base in (("", 1000), ("i", 1024))
}
TRAINING_TOKENS = re.compile(r"(\d{1,18})(?:\.(\d{1,12}))?([KMBT]?)", re.IGNORECASE)
TRAINING_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
FACTORS = {"": 1, "k": 1024, "m": 1024**2}


def parse_tokens(text: str, *, where: str) -> int:
    """A context length.

    >>> parse_tokens("8192", where="--context"), parse_tokens("8k", where="--context")
    (8192, 8192)

    Raises: ParamcountError for anything that is not a whole number of tokens.
    """
    match = TOKENS.fullmatch(text.strip().replace(",", "").replace("_", ""))
    if match:
        whole, decimals, unit = match.groups("")
        tokens, rest = divmod(int(whole + decimals) * FACTORS[unit.lower()], 10 ** len(decimals))
        if not rest:
            return int(tokens)
    raise ParamcountError(f"= {describe_value(text)}", where=where, expected="tokens, such as 8192, 8k or 1M")


def parse_training_tokens(text: str, *, where: str) -> int:
    """A number of tokens to train on, in decimal units.

    >>> parse_training_tokens("15T", where="--train-tokens"), parse_training_tokens("1.5B", where="--train-tokens")
    (15000000000000, 1500000000)

    Raises: ParamcountError for anything that is not a whole number of tokens.
    """
    match = TRAINING_TOKENS.fullmatch(text.strip().replace(",", "").replace("_", ""))
    if match:
        whole, decimals, unit = match.groups("")
        tokens, rest = divmod(int(whole + decimals) * TRAINING_FACTORS[unit.lower()], 10 ** len(decimals))
        if tokens and not rest:
            return int(tokens)
    raise ParamcountError(f"= {describe_value(text)}", where=where, expected="tokens, such as 15T, 300B or 1000000")


def parse_bytes(text: str, *, where: str) -> int:
    """A size of a memory: decimal for GB, binary for GiB.

    >>> parse_bytes("24GB", where="--memory"), parse_bytes("80 GiB", where="--memory")
    (24000000000, 85899345920)

    Raises: ParamcountError for anything else.
    """
    match = BYTES.fullmatch(text.strip())
    if match:
        whole, decimals, unit = match.groups("")
        size, rest = divmod(int(whole + decimals) * BYTE_UNITS[unit.lower()], 10 ** len(decimals))
        if size and not rest:
            return int(size)
    raise ParamcountError(f"= {describe_value(text)}", where=where, expected="a size such as 24GB or 80GiB")
