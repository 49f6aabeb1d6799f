"""Sizes from outside: ints, int64 arrays for a sweep, symbols. Arrays wrap silently, so their largest corner is counted first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paramcount.errors import ParamcountError, shown

LARGEST_INT64 = 2**63 - 1


def checked(sizes: Mapping[str, Any], symbol: type, *, least: int | None = 1) -> dict[str, Any]:
    """The same sizes, small integer arrays widened to int64. `symbol`: the type of symbols, which are not looked into.

    Raises: ParamcountError that names the first size that is none of the three, or below `least`; for arrays and symbols at once.
    """
    found = {name: value if isinstance(value, symbol) else _whole(name, value, least) for name, value in sizes.items()}
    arrays = [name for name, value in found.items() if is_array(value)]
    symbolic = [name for name, value in found.items() if isinstance(value, symbol)]
    if arrays and symbolic:
        raise ParamcountError(f"an array and {symbolic[0]} a symbol", where=arrays[0], accepted="arrays or symbols, not both at once")
    return found


def is_array(value: object) -> bool:
    """Whether a value is a NumPy array, without importing NumPy to ask."""
    return hasattr(value, "dtype")


def refuse_overflow(count: Callable[[Mapping[str, Any]], Any], sizes: Mapping[str, Any]) -> None:
    """Raises where the largest corner of a sweep has no room in int64. `count` must grow with every size."""
    if any(is_array(value) for value in sizes.values()):
        largest = count({name: max(int(value.max()), -int(value.min())) if is_array(value) else abs(value) for name, value in sizes.items()})
        if largest > LARGEST_INT64:
            raise ParamcountError(f"the largest of these counts is {largest:,}", accepted=f"at most {LARGEST_INT64:,} in arrays; ints have no limit")


def _whole(name: str, value: Any, least: int | None) -> Any:
    accepted = f"a whole number{'' if least is None else f' from {least}'}, an array of them or a symbol"
    lowest = -LARGEST_INT64 if least is None else least
    if is_array(value) and value.dtype.kind in "iu" and value.size:
        if value.min() < lowest or value.max() > LARGEST_INT64:
            raise ParamcountError(f"{name} holds {value.min()} to {value.max()}", accepted=accepted)
        return value.astype("int64") if value.ndim else int(value)
    if isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least):
        return value
    raise ParamcountError(f"{name} = {shown(value)}", accepted=accepted)
