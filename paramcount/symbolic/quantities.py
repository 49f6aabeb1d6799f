"""Numbers as people type them: 50k, 7.5B, 32Ki. Where tokens are counted, k is 1,024, as in "a context of 32k"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

DECIMAL: Mapping[str, int] = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
BINARY: Mapping[str, int] = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
OF_TOKENS: Mapping[str, int] = {"k": 2**10, "m": 2**20}
QUANTITY = re.compile(
    r"(-?\d{1,3}(?:,\d{3}){1,9}|-?\d{1,30})(?:\.(\d{1,12}))?(?:e\+?(\d{1,2}))? ?([a-z]{0,2})", re.IGNORECASE
)
BETWEEN_DIGITS = re.compile("(?<=[0-9])_(?=[0-9])")
LENGTH = re.compile(r"context|position|window|chunk|tokens|max_model_len|ctx_size|num_ctx", re.IGNORECASE)


def is_length(name: str) -> bool:
    """Whether a size, column or option of this name counts tokens.

    >>> is_length("n_positions"), is_length("sliding_window"), is_length("vocab_size")
    (True, True, False)
    """
    return bool(LENGTH.search(name))


def find_factor(suffix: str, name: str = "") -> int | None:
    """What a suffix multiplies a number by, in the value of a size, column or option of this name; None if unknown."""
    units = {**DECIMAL, **BINARY, **(OF_TOKENS if is_length(name) else {})}
    return units.get(suffix.lower())


def parse_quantity(text: str, name: str = "") -> int | None:
    """The integer that a text states as the value of a size, column or option of this name; None if it states none.

    >>> parse_quantity("50k", "vocab_size"), parse_quantity("32k", "n_positions"), parse_quantity("1.5Ki")
    (50000, 32768, 1536)
    >>> parse_quantity("1.5"), parse_quantity("gelu"), parse_quantity("50_257"), parse_quantity("7e9")
    (None, None, 50257, 7000000000)
    """
    match = QUANTITY.fullmatch(BETWEEN_DIGITS.sub("", text.strip()))
    factor = find_factor(match[4], name) if match else None
    if match is None or factor is None:
        return None
    number = Fraction(f"{match[1].replace(',', '')}.{match[2] or 0}") * 10 ** int(match[3] or 0) * factor
    return int(number) if number.denominator == 1 else None
