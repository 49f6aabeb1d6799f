"""Quantities as people type them: tokens."""

from __future__ import annotations

import re

from paramcount.errors import ParamcountError, describe_value

TOKENS = re.compile(r"(\d{1,12})(?:\.(\d{1,6}))?([kKmM]?)")
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
