"""Quantities as people type them on the command line: tokens, parameters and bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping

import click

from paramcount.errors import ParamcountError, describe_value
from paramcount.symbolic.quantities import parse_quantity

NUMBER = re.compile(r"(\d{1,18})(?:\.(\d{1,12}))?\s*([a-z]{0,3})", re.IGNORECASE)
# {unit in lower case: factor}
CONTEXT_UNITS = {"": 1, "k": 1024, "m": 1024**2, "ki": 1024, "mi": 1024**2}
DECIMAL_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
BYTE_UNITS = {  # decimal for GB, binary for GiB
    f"{letter}{infix}b": base**power
    for power, letter in enumerate("kmgt", start=1)
    for infix, base in (("", 1000), ("i", 1024))
}


class Quantity(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """A number with a unit, if that is a whole number of what the unit counts; of bytes, fractions are rounded down."""

    name = "quantity"

    def __init__(self, units: Mapping[str, int], expected: str, *, rounds: bool = False) -> None:
        self.units, self.expected, self.rounds = units, expected, rounds

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return self.parse(str(value), max(param.opts, key=len) if param else "")

    def parse(self, text: str, where: str = "") -> int:
        """The number. `where`: the option, for errors.

        >>> TOKENS.parse("8k"), TRAINING_TOKENS.parse("1.5B"), BYTES.parse("24GB"), BYTES.parse("12.51 GiB")
        (8192, 1500000000, 24000000000, 13432510218)

        Raises: ParamcountError for anything else.
        """
        match = NUMBER.fullmatch(text.strip().replace(",", "").replace("_", ""))
        factor = self.units.get(match[3].lower()) if match else None
        if match and factor is not None:
            whole, decimals = match[1], match[2] or ""
            quantity, rest = divmod(int(whole + decimals) * factor, 10 ** len(decimals))
            if not rest or self.rounds:
                return int(quantity)
        raise ParamcountError(f"= {describe_value(text)}", where=where, expected=self.expected)


class BytesOrZero(Quantity):
    """A number of bytes that may be 0."""

    def parse(self, text: str, where: str = "") -> int:
        return 0 if text == "0" else super().parse(text, where)


class Integer(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """An integer, which may have a suffix. `of_tokens`: it counts tokens, so that 8k is 8,192."""

    name = "integer"

    def __init__(self, *, of_tokens: bool = False) -> None:
        self.of_tokens = of_tokens

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = parse_quantity(str(value), "tokens" if self.of_tokens else "")
        if number is None:
            self.fail(f"{value!r} is not a valid integer.", param, ctx)
        return number


INTEGER, LENGTH = Integer(), Integer(of_tokens=True)
TOKENS = Quantity(CONTEXT_UNITS, "tokens, such as 8192, 8k or 1M")
TRAINING_TOKENS = Quantity(DECIMAL_UNITS, "tokens, such as 15T, 300B or 1000000")
PARAMETERS = Quantity(DECIMAL_UNITS, "parameters, such as 3B, 124M or 124439808")
BYTES = Quantity(BYTE_UNITS, "a size such as 24GB or 80GiB", rounds=True)
OVERHEAD = BytesOrZero(BYTES.units, BYTES.expected, rounds=True)
