"""Checks of sizes: ints, int64 arrays (sweeps) and symbols.

NumPy integers overflow silently, so the largest point of a sweep is evaluated first with Python ints.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from paramcount.errors import ParamcountError, describe_integer, describe_value

LARGEST_INT64 = 2**63 - 1


def check_sizes(
    sizes: Mapping[str, Any], symbol: type, *, least: int | None = 1, optional: Container[str] = ()
) -> dict[str, Any]:
    """The checked sizes, with integer arrays widened to int64. `symbol`: type of symbols. `optional`: sizes that may be 0.

    Raises: ParamcountError that names the first size of another type or below `least`; also if arrays are mixed with
    symbols, do not broadcast, or come with an int beyond int64.
    """
    found = {
        name: value if isinstance(value, symbol) else _whole(name, value, 0 if name in optional else least)
        for name, value in sizes.items()
    }
    arrays = [name for name, value in found.items() if is_array(value)]
    if arrays:
        _together(found, arrays, symbol)
    return found


def _together(sizes: Mapping[str, Any], arrays: list[str], symbol: type) -> None:
    from numpy import broadcast_shapes  # already loaded if there are arrays

    for name, value in sizes.items():
        if isinstance(value, symbol):
            raise ParamcountError(
                f"an array and {name} a symbol", where=arrays[0], expected="arrays or symbols, not both at once"
            )
        if isinstance(value, int) and abs(value) > LARGEST_INT64:
            raise ParamcountError(
                f"{name} = {describe_value(value)} beside an array",
                expected=f"at most {LARGEST_INT64:,}; ints alone have no limit",
            )
    shapes = {name: sizes[name].shape for name in arrays}
    try:
        broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
        raise ParamcountError(
            f"arrays of shapes that do not broadcast: {listed}", expected="shapes that NumPy broadcasts"
        ) from None


def is_array(value: object) -> bool:
    """Whether a value is a NumPy array, without importing NumPy."""
    return hasattr(value, "dtype")


def refuse_overflow(count: Callable[[Mapping[str, Any]], Any], sizes: Mapping[str, Any]) -> None:
    """Raises: ParamcountError if the largest point of a sweep exceeds int64. `count` must be monotonic in every size."""
    if any(is_array(value) for value in sizes.values()):
        largest = count(
            {
                name: max(int(value.max()), -int(value.min())) if is_array(value) else abs(value)
                for name, value in sizes.items()
            }
        )
        if largest > LARGEST_INT64:
            raise ParamcountError(
                f"the largest of these counts is {largest:,}",
                expected=f"at most {LARGEST_INT64:,} in arrays; ints have no limit",
            )


def _whole(name: str, value: Any, least: int | None) -> Any:
    expected = f"{describe_integer(least)}, an array of integers or a symbol"
    lowest = -LARGEST_INT64 if least is None else least
    if is_array(value) and value.dtype.kind in "iu" and value.size:
        if value.min() < lowest or value.max() > LARGEST_INT64:
            raise ParamcountError(f"{name} holds {value.min()} to {value.max()}", expected=expected)
        return value.astype("int64") if value.ndim else int(value)
    if isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least):
        return value
    raise ParamcountError(f"{name} = {describe_value(value)}", expected=expected)


def refuse_where(
    wrong: Callable[[Any, Any], Any], problem: str, expected: str, sizes: Mapping[str, Any], small: str, large: str
) -> None:
    """Raises: ParamcountError if two sizes contradict each other at any point of a sweep. Symbols are not checked."""
    a, b = sizes[small], sizes[large]
    if all(is_array(size) or isinstance(size, int) for size in (a, b)):
        found = wrong(a, b)
        if found.any() if is_array(found) else found:
            raise ParamcountError(f"{small} {problem} {large}", expected=f"{expected} {large}")
