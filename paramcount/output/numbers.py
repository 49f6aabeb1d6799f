"""Published parameter counts such as "7.61B" or "~1.04T": parsed, compared with a count, and written with a unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from paramcount.errors import ParamcountError, describe_value

UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}
FIGURE = re.compile(
    r"[~≈]?\s*\+?(?=\.?\d)(\d{1,3}(?:,\d{3}){1,9}|\d{1,30}|)(?:\.(\d{0,12}))?(?:e\+?(\d{1,2}))?\s*([KMBGT]?)",
    re.IGNORECASE,
)

COUNT_UNITS = (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3))
VALID = "a number such as 7B, 7.61B or ~1.04T, or an integer"


class Figure(NamedTuple):
    """A published parameter count: its value and the unit of its last digit (1 if exact)."""

    value: int
    step: int


def parse_figure(text: str | int) -> Figure:
    """The value and precision of a published parameter count.

    >>> parse_figure("7.61B")
    Figure(value=7610000000, step=10000000)
    >>> parse_figure("124,439,808")
    Figure(value=124439808, step=1)
    >>> parse_figure(".124B") == parse_figure("+124.M") == parse_figure("124e6")
    True

    Raises: ParamcountError for anything else.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return Figure(text, 1)
    match = FIGURE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ParamcountError(f"{describe_value(text)} is not a parameter count", expected=VALID)
    whole, decimals = match[1].replace(",", ""), match[2] or ""
    unit = UNITS[match[4].upper()] * 10 ** int(match[3] or 0)
    if unit < 10 ** len(decimals):
        raise ParamcountError(f"{describe_value(text)} is not a whole number of parameters", expected=VALID)
    step = unit // 10 ** len(decimals)
    return Figure(int(whole + decimals) * step, step)


def match_figure(count: int, figure: Figure) -> str | None:
    """How a count matches this figure: `exact`, `rounded` (half up) or `truncated`; None if it does not.

    >>> [match_figure(7_615_616_512, parse_figure(text)) for text in ("7.62B", "7.61B", "7B", "8B", "9B")]
    ['rounded', 'truncated', 'truncated', 'rounded', None]
    """
    value, step = figure
    if count == value:
        return "exact"
    if value == 0:  # to which every count below half a unit rounds
        return None
    if (2 * count + step) // (2 * step) * step == value:
        return "rounded"
    return "truncated" if count // step * step == value else None


def describe_verdict(verdict: str) -> str:
    """A verdict as text.

    >>> describe_verdict("rounded"), describe_verdict("wrong")
    ('matches when rounded', 'wrong')
    """
    return "matches when rounded" if verdict == "rounded" else verdict


def format_count(count: int) -> str:
    """A count with three significant digits and a unit.

    >>> format_count(124439808), format_count(8030261248), format_count(1536), format_count(671026404352)
    ('124M', '8.03B', '1.54K', '671B')
    """
    return format_scaled(count, COUNT_UNITS)


def format_bytes(count: int) -> str:
    """Decimal bytes: 1 GB is 10⁹ bytes.

    >>> format_bytes(497759232), format_bytes(2684105617408)
    ('498 MB', '2.68 TB')
    """
    if count < 1000:
        return f"{count} B"
    return format_scaled(count, ((" TB", 10**12), (" GB", 10**9), (" MB", 10**6), (" kB", 10**3)))


def format_binary_bytes(count: int) -> str:
    """Bytes in binary units: 1 GiB is 2^30 bytes.

    >>> format_binary_bytes(497759232), format_binary_bytes(2684105617408)
    ('475 MiB', '2.44 TiB')
    """
    if count < 1024:
        return f"{count} B"
    return format_scaled(count, ((" TiB", 2**40), (" GiB", 2**30), (" MiB", 2**20), (" KiB", 2**10)))


def format_scaled(count: int, units: Sequence[tuple[str, int]], digits: int = 3) -> str:
    """A count with so many significant digits, or all of those before the point, in the largest unit that does not
    exceed it. `units`: largest first, with the space before them, if any.

    >>> [format_scaled(n, COUNT_UNITS, 2) for n in (7_439_808, 852_282_624, 999_700_000, 3416)]
    ['7.4M', '852M', '1.0B', '3.4K']
    """
    i = next((i for i, (_, size) in enumerate(units) if count >= size), None)
    if i is None:
        return str(count)
    unit, size = units[i]
    for decimals in reversed(range(digits)):  # integer arithmetic, because a float is not exact
        rounded = (count * 10**decimals * 2 + size) // (2 * size)
        if rounded < 10**digits:
            break
    if rounded >= 1000 and i:  # 999.9M is 1.00B
        unit, rounded, decimals = units[i - 1][0], 10 ** (digits - 1), digits - 1
    text = str(rounded).rjust(decimals + 1, "0")
    whole, fraction = text[: len(text) - decimals], text[len(text) - decimals :]
    return f"{whole}.{fraction}{unit}" if fraction else f"{whole}{unit}"


def format_share(n: int, total: int) -> str:
    """A share as a percentage with one decimal; "" for 0.

    >>> format_share(1, 3), format_share(2, 3), format_share(0, 3), format_share(0, 0)
    ('33.3%', '66.7%', '', '')
    """
    if not n:
        return ""
    tenths = (2000 * n + total) // (2 * total)  # rounded in integers
    return f"{tenths // 10}.{tenths % 10}%"
