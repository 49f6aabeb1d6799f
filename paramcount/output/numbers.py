"""Published figures such as "7.61B", "~1.04T" or 8030261248: their values, and whether a count matches them."""

from __future__ import annotations

import re
from typing import NamedTuple

from paramcount.errors import ParamcountError, describe_value

UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}
FIGURE = re.compile(r"[~≈]?\s*(\d{1,3}(?:,\d{3}){1,9}|\d{1,30})(?:\.(\d{1,12}))?\s*([KMBGT]?)", re.IGNORECASE)


class Figure(NamedTuple):
    """A published figure: its value and the unit of its last digit (1 if exact)."""

    value: int
    step: int


def parse_figure(text: str | int) -> Figure:
    """The value and precision of a published figure.

    >>> parse_figure("7.61B")
    Figure(value=7610000000, step=10000000)
    >>> parse_figure("124,439,808")
    Figure(value=124439808, step=1)

    Raises: ParamcountError for anything else.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return Figure(text, 1)
    match = FIGURE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ParamcountError(
            f"{describe_value(text)} is not a figure", expected="7B, 124M, 7.61B, ~1.04T or an integer"
        )
    whole, decimals, unit = match[1].replace(",", ""), match[2] or "", UNITS[match[3].upper()]
    if unit < 10 ** len(decimals):
        raise ParamcountError(
            f"{describe_value(text)} is not a whole number of parameters",
            expected="7B, 124M, 7.61B, ~1.04T or an integer",
        )
    step = unit // 10 ** len(decimals)
    return Figure(int(whole + decimals) * step, step)


def match_figure(count: int, figure: Figure) -> str | None:
    """How a count matches this figure: `exact`, `rounded` (half up) or `truncated`; None if it does not.

    >>> match_figure(7_615_616_512, parse_figure("7.62B")), match_figure(7_615_616_512, parse_figure("7.61B")), match_figure(7_615_616_512, parse_figure("7B"))
    ('rounded', 'truncated', 'truncated')
    """
    value, step = figure
    if count == value:
        return "exact"
    if (2 * count + step) // (2 * step) * step == value:
        return "rounded"
    return "truncated" if count // step * step == value else None


def format_count(count: int) -> str:
    """A count with three significant digits and a unit.

    >>> format_count(124439808), format_count(8030261248), format_count(1536), format_count(671026404352)
    ('124 M', '8.03 B', '1.54 K', '671 B')
    """
    return format_scaled(count, (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3)))


def format_bytes(count: int) -> str:
    """Decimal bytes: 1 GB is 10⁹ bytes.

    >>> format_bytes(497759232), format_bytes(2684105617408)
    ('498 MB', '2.68 TB')
    """
    return (
        format_scaled(count, (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)))
        if count >= 1000
        else f"{count} B"
    )


def format_scaled(count: int, units: tuple[tuple[str, int], ...]) -> str:
    for i, (unit, size) in enumerate(units):
        if count >= size:
            for decimals in (2, 1, 0):  # integer arithmetic: no float ever holds a count
                rounded = (count * 10**decimals * 2 + size) // (2 * size)
                if rounded < 1000:
                    break
            else:
                if rounded >= 1000 and i:
                    unit, rounded, decimals = units[i - 1][0], 100, 2
            digits = str(rounded).rjust(decimals + 1, "0")
            return f"{digits[: len(digits) - decimals]}{'.' * (decimals > 0)}{digits[len(digits) - decimals :]} {unit}"
    return str(count)


def group_digits(shape: str) -> str:
    """A shape with grouped digits, as people read it.

    >>> group_digits("50257 × 768")
    '50,257 × 768'
    """
    return re.sub(r"\d+", lambda digits: f"{int(digits[0]):,}", shape)
