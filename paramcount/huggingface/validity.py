"""Which combinations of sizes are valid, and why the others are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from paramcount.errors import ParamcountError
from paramcount.huggingface.fields import get_limits
from paramcount.huggingface.partial import Evaluator, split_sizes
from paramcount.sizes import Sizes, inner_configs
from paramcount.sizes.fields import get_info
from paramcount.sizes.rules import list_checks
from paramcount.sizes.validation import parse_fields

Check = Callable[[Any], None]


def find_limits(sizes: Sizes, path: str) -> tuple[int, int] | None:
    """The smallest and the largest valid value of an integer field, optional or not; None for any other field."""
    *blocks, name = path.split(".")
    block: Sizes = sizes
    for inner in blocks:
        block = getattr(block, inner)
    limits = list(get_limits(get_info(type(block), name)))
    least = [limit.ge for limit in limits if hasattr(limit, "ge")]
    most = [limit.le for limit in limits if hasattr(limit, "le")]
    return (max(least), min(most)) if least and most else None


def validate_field(sizes: Sizes, path: str, value: object) -> Any:
    """A value as the field of this path stores it.

    Raises: ParamcountError if the field does not accept it.
    """
    name, _, rest = path.partition(".")
    if rest:
        try:
            return validate_field(getattr(sizes, name), rest, value)
        except ParamcountError as error:
            raise error.add_block(name) from None
    return getattr(parse_fields(type(sizes), {**sizes.__dict__, name: value}), name)


def list_all_checks(sizes: Sizes) -> Iterator[Check]:
    """The checks of sizes against each other, those of inner configs included."""
    yield from list_checks(type(sizes))
    for name in inner_configs(type(sizes)):
        if (block := getattr(sizes, name)) is not None:
            for check in list_all_checks(block):
                yield partial(check_block, name, check)


def check_block(name: str, check: Check, sizes: Any) -> None:
    """Apply a check to an inner config."""
    try:
        check(getattr(sizes, name))
    except ParamcountError as error:
        raise error.add_block(name) from None


class Validator:
    """The checks of a model whose sizes vary.

    Args:
        sizes: The sizes of the model.
        values: {path: value} of the sizes that differ from the model's and do not vary.
        varying: The paths of the varying sizes, which are integers.
    """

    def __init__(self, sizes: Sizes, values: Mapping[str, Any], varying: Sequence[str]) -> None:
        self.sizes = sizes
        self.limits = {path: limits for path in varying if (limits := find_limits(sizes, path))}
        self.partial, self.slots = split_sizes(sizes, values, varying)
        self.evaluators = [Evaluator(partial(self.apply, check)) for check in list_all_checks(sizes)]

    def apply(self, check: Check, values: Mapping[str, int]) -> ParamcountError | None:
        """The error that a check raises for these values of the varying sizes; None if it raises none."""
        for path, value in values.items():
            self.slots[path][path.rpartition(".")[2]] = value
        try:
            check(self.partial)
        except ParamcountError as error:
            return error.with_traceback(None)
        finally:
            for path in values:
                del self.slots[path][path.rpartition(".")[2]]
        return None

    def clip(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """The values with the limit in place of those outside the limits of their field, and which rows have none.

        Shapes: the second value has the common shape of the arrays that have such values, or none.
        """
        import numpy as np

        clipped, is_valid = {}, np.ones((), dtype=bool)
        for path, array in values.items():
            least, most = self.limits[path]
            is_inside = np.asarray((array >= least) & (array <= most), dtype=bool)
            if is_inside.all():
                clipped[path] = array.astype("int64", copy=False)
                continue
            clipped[path] = np.where(is_inside, array, least).astype("int64")
            is_valid = is_valid & is_inside
        return clipped, is_valid

    def find_valid(self, values: Mapping[str, Any]) -> Any:
        """Which rows pass every check, as a bool array that broadcasts with the values. They are within the limits."""
        import numpy as np

        is_valid = np.ones((), dtype=bool)
        for evaluator in self.evaluators:
            distinct, errors = evaluator.evaluate(values)
            passes = [error is None for error in errors]
            if not all(passes):
                is_valid = is_valid & distinct.take(passes)
        return is_valid

    def find_error(self, values: Mapping[str, int]) -> ParamcountError | None:
        """The first error of one row; None if it is valid."""
        for path, value in values.items():
            least, most = self.limits[path]
            if not least <= value <= most:
                try:
                    validate_field(self.sizes, path, value)
                except ParamcountError as error:
                    return error
        errors = (evaluator.evaluate_row(values) for evaluator in self.evaluators)
        return next((error for error in errors if error is not None), None)
