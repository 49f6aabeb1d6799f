"""How a table of models words its names and numbers: full names, counts in one unit, shares of the total."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from paramcount.counting.components import COMPONENTS
from paramcount.counting.count import Count
from paramcount.output.numbers import COUNT_UNITS, format_count, format_scaled
from paramcount.output.tables import Column, format_value
from paramcount.zoo import Model
from paramcount.zoo.columns import HEADINGS, PARAMETERS, TableField

AUTO = "auto"  # the unit that gives three significant digits, for each number
UNITS = (AUTO, *(unit for unit, _ in COUNT_UNITS))
SHARE = "_share"  # the end of a column with a share
MOST_DECIMALS = 3


class Wording(NamedTuple):
    """How to word a table: `names` instead of ids, and numbers of parameters in `units` instead of in full."""

    names: bool = False
    units: str | None = None

    def format_column(self, column: Column, field: TableField) -> Column:
        """A column of a table for people, with its numbers in the chosen unit."""
        if self.units is None or field.unit != PARAMETERS or field.name.endswith(("difference", SHARE)):
            return column
        return column._replace(show=partial(format_in_unit, unit=self.units))


AS_COUNTED = Wording()


def format_in_unit(value: Any, *, unit: str) -> str:
    """A count in a unit, with three significant digits and at most three decimals.

    >>> [format_in_unit(n, unit="B") for n in (671_026_404_352, 37_552_282_624, 124_439_808, 786_432, 38_400, 0)]
    ['671B', '37.6B', '0.124B', '0.001B', '<0.001B', '0']
    >>> format_in_unit(124_439_808, unit="auto"), format_in_unit(None, unit="M")
    ('124M', '–')
    """
    if type(value) is not int or value == 0:
        return format_value(value)
    if unit == AUTO:
        return format_count(value)
    size = dict(COUNT_UNITS)[unit]
    if value >= size:
        return format_scaled(value, ((unit, size),))
    thousandths = (2 * 10**MOST_DECIMALS * value + size) // (2 * size)
    return (
        f"{thousandths // 10**MOST_DECIMALS}.{thousandths % 10**MOST_DECIMALS:03}{unit}"
        if thousandths
        else f"<0.001{unit}"
    )


def compute_share(model: Model, count: Count | None, *, component: str) -> float | None:
    """The share of a component in the total, in percent; None for a third-party estimate."""
    if count is None or not count.total:
        return None
    return round(100 * count.components[component] / count.total, 4)


def format_percentage(value: Any) -> str:
    """A share with one decimal.

    >>> [format_percentage(value) for value in (97.4491, 0.0002, 0.0, None)]
    ['97.4%', '<0.1%', '0%', '–']
    """
    if value is None:
        return format_value(value)
    return "0%" if value == 0 else "<0.1%" if value < 0.05 else f"{value:.1f}%"


def make_share_field(component: str) -> TableField:
    compute: Callable[..., float | None] = partial(compute_share, component=component)
    heading, meaning = HEADINGS.get(component, component), f"Share of {component} in the total."
    return TableField(f"{component}{SHARE}", "number", "percent", meaning, compute, heading, format_percentage)


SHARES: Mapping[str, TableField] = {component: make_share_field(component) for component in COMPONENTS}


def choose_shares(names: Sequence[str]) -> tuple[list[str], dict[str, TableField]]:
    """These columns with the shares of the components among them in their place, and the columns of the shares."""
    fields = {SHARES[name].name: SHARES[name] for name in names if name in SHARES}
    return [SHARES[name].name if name in SHARES else name for name in names], fields
