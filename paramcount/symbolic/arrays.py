"""Checks of sizes that are ints, int64 arrays or symbols.

NumPy integers overflow silently, so the largest point of the arrays is first evaluated with Python ints.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from paramcount.errors import ParamcountError, describe_integer, describe_value, format_shape

LARGEST_INT64 = 2**63 - 1


def check_sizes(
    sizes: Mapping[str, Any], symbol: type, *, least: int | None = 1, optional: Container[str] = ()
) -> dict[str, Any]:
    """The checked sizes, with integer arrays widened to int64.

    `symbol`: the type of symbols. `least`: the smallest valid size. `optional`: names of sizes that may be 0.

    Raises: ParamcountError that names the first size of another type or below `least`; also if arrays are mixed with
    symbols, do not broadcast, or come with an int beyond int64.
    """
    checked = {}
    for name, value in sizes.items():
        if isinstance(value, symbol):
            checked[name] = value
        else:
            checked[name] = _check_integer(name, value, 0 if name in optional else least)
    names = [name for name, value in checked.items() if is_array(value)]
    if names:
        _check_arrays(checked, names, symbol)
    return checked


def _check_arrays(sizes: Mapping[str, Any], names: list[str], symbol: type) -> None:
    """Check that the arrays of these names fit each other and the other sizes."""
    from numpy import broadcast_shapes  # already loaded if there are arrays

    for name, value in sizes.items():
        if isinstance(value, symbol):
            raise ParamcountError(
                f"is an array, but {name} is a symbol", where=names[0], expected="only arrays or only symbols"
            )
        if isinstance(value, int) and abs(value) > LARGEST_INT64:
            raise ParamcountError(
                f"{name} = {describe_value(value)} is too large to combine with an array",
                expected=f"at most {LARGEST_INT64:,}; without arrays there is no limit",
            )
    shapes = {name: sizes[name].shape for name in names}
    try:
        broadcast_shapes(*shapes.values())
    except ValueError:
        texts = ", ".join(f"{name} {format_shape(shape)}" for name, shape in shapes.items())
        raise ParamcountError(f"shapes do not broadcast: {texts}", expected="shapes that NumPy broadcasts") from None


def is_array(value: object) -> bool:
    """Whether a value is a NumPy array, without importing NumPy."""
    return hasattr(value, "dtype")


def find_magnitude(value: Any) -> int:
    """The largest absolute value of an int or an array."""
    return max(abs(int(value.max())), abs(int(value.min()))) if is_array(value) else abs(value)


def check_overflow(count: Callable[[Mapping[str, Any]], Any], sizes: Mapping[str, Any]) -> None:
    """Raises: ParamcountError if a count of arrays can exceed int64. `count` must be monotonic in every size."""
    if not any(is_array(value) for value in sizes.values()):
        return
    largest = count({name: find_magnitude(value) for name, value in sizes.items()})
    if largest > LARGEST_INT64:
        raise ParamcountError(
            f"the largest of these counts is {largest:,}",
            expected=f"at most {LARGEST_INT64:,} in arrays; ints have no limit",
        )


def _check_integer(name: str, value: Any, least: int | None) -> Any:
    expected = f"{describe_integer(least)}, an array of integers or a symbol"
    lowest = -LARGEST_INT64 if least is None else least
    if is_array(value) and value.dtype.kind in "iu" and value.size:
        if value.min() < lowest or value.max() > LARGEST_INT64:
            raise ParamcountError(f"{name} = {value.min()} to {value.max()}", expected=expected)
        return value.astype("int64") if value.ndim else int(value)
    if isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least):
        return value
    raise ParamcountError(f"{name} = {describe_value(value)}", expected=expected)
