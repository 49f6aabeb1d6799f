"""Counts of a model for every combination of some sizes, in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcount.errors import ParamcountError, describe_value, make_printable
from paramcount.huggingface.validity import Validator, find_limits, validate_field
from paramcount.sweeping.axes import Axis, Expression, order_expressions
from paramcount.sweeping.columns import DEFAULT_COLUMNS, Counter, find_columns
from paramcount.sweeping.rows import Rows, count_columns
from paramcount.symbolic.compiled import evaluate_arrays
from paramcount.symbolic.trees import evaluate, replace_names
from paramcount.zoo import Model
from paramcount.zoo.what_if import get_size, list_paths, make_size_names, resolve_path

if TYPE_CHECKING:
    import pandas

CHUNK = 2**17  # combinations
REASON = "reason"  # the column with the reason why a combination is invalid
MOST_COMBINATIONS = 2**62

Arrays = dict[str, Any]  # {column: array}


class SweepChunk(NamedTuple):
    """Some combinations of a sweep, in order."""

    columns: Arrays  # of the valid combinations: their sizes, then the counts
    combinations: int
    invalid: int


@dataclass(frozen=True)
class Sweep:
    """Every combination of some sizes of a model. Iterating yields a DataFrame for each chunk of valid combinations.

    The first size varies slowest; flags, and whatever else is no integer, vary slower than all integers.
    """

    model: Model
    axes: Mapping[str, Sequence[object]]  # {size: its values}
    expressions: Mapping[str, Expression]  # {size: how it depends on others}, in the order of evaluation
    columns: tuple[str, ...]

    def __repr__(self) -> str:
        return (
            f"Sweep({self.combinations:,} combinations of {make_printable(', '.join(self.axes), 60)}: {self.model.id})"
        )

    @property
    def combinations(self) -> int:
        """The number of combinations, valid or not."""
        return prod(map(len, self.axes.values()))

    def __iter__(self) -> Iterator[pandas.DataFrame]:
        import pandas

        for chunk in self.chunks():
            yield pandas.DataFrame(chunk.columns)

    def arrays(self) -> Iterator[Arrays]:
        """The same as `{column: NumPy array}`."""
        return (chunk.columns for chunk in self.chunks())

    def invalid(self) -> Iterator[pandas.DataFrame]:
        """The invalid combinations, with the reason for each."""
        import pandas

        for chunk in self.chunks(invalid=True):
            yield pandas.DataFrame(chunk.columns)

    def chunks(self, *, invalid: bool = False, size: int = CHUNK) -> Iterator[SweepChunk]:
        """The combinations in chunks of at most `size`. `invalid`: the invalid ones with reasons, without counts."""
        structural = [path for path in self.axes if not is_numeric(self.model, path, self.axes[path])]
        numeric = {path: values for path, values in self.axes.items() if path not in structural}
        for combination in product(*(self.axes[path] for path in structural)):
            part = StructureSweep(self, dict(zip(structural, combination)), numeric)
            yield from part.chunks(invalid, size)


def is_numeric(model: Model, path: str, values: Sequence[object]) -> bool:
    """Whether a size takes only integers, so that it may be a symbol."""
    are_integers = isinstance(values, range) or all(type(value) is int for value in values)
    return are_integers and find_limits(model.sizes, path) is not None


def make_sweep(model: Model, axes: Mapping[str, Axis], columns: Sequence[str] = DEFAULT_COLUMNS) -> Sweep:
    """The sweep of a model. `axes`: what each size takes; names are those that `what_if` accepts.

    Raises: ParamcountError for an unknown size or column, a size that is given twice, and too many combinations.
    """
    sizes = model.sizes
    named: dict[str, Axis] = {}
    if not axes:
        raise ParamcountError("no size varies", expected="at least one size, such as n_layers=16:64:4")
    try:
        for name, axis in axes.items():
            path = resolve_path(sizes, name)
            if path in named:
                raise ParamcountError("is given twice", where=make_printable(name, 60), expected="each size once")
            named[path] = axis
        found = {
            path: axis._replace(tree=replace_names(axis.tree, lambda name: resolve_path(sizes, name)))
            for path, axis in named.items()
            if isinstance(axis, Expression)
        }
        expressions = {path: found[path] for path in order_expressions(found)}
        for path, expression in expressions.items():
            check_operands(model, path, expression, named)
    except ParamcountError as error:
        raise error.add_location(model.id) from None
    values = {path: axis for path, axis in named.items() if not isinstance(axis, Expression)}
    sweep = Sweep(model, values, expressions, find_columns(model, columns))
    if sweep.combinations > MOST_COMBINATIONS:
        raise ParamcountError(f"{sweep.combinations:,} combinations", expected=f"at most {MOST_COMBINATIONS:,}")
    return sweep


def check_operands(model: Model, path: str, expression: Expression, axes: Mapping[str, Axis]) -> None:
    """Raises: ParamcountError if an expression computes or reads a size that is not an integer."""
    if find_limits(model.sizes, path) is None:
        found = f"= {expression.text} is an integer"
        raise ParamcountError(found, where=path, expected="the values of this size in a list")
    for name in expression.names:
        axis = axes.get(name, (get_size(model.sizes, name),))
        if not isinstance(axis, Expression) and not is_numeric(model, name, axis):
            value = (
                next(value for value in axis if type(value) is not int) if find_limits(model.sizes, name) else axis[0]
            )
            found = f"= {expression.text} reads {name} = {describe_value(value)}"
            raise ParamcountError(found, where=path, expected="expressions of integers")


class StructureSweep:
    """The part of a sweep with the same flags."""

    def __init__(self, sweep: Sweep, flags: Mapping[str, object], axes: Mapping[str, Sequence[object]]) -> None:
        sizes = sweep.model.sizes
        self.sweep, self.flags, self.axes = sweep, flags, axes
        self.varying = (*axes, *sweep.expressions)
        self.flag_error: ParamcountError | None = None
        try:
            values = {path: validate_field(sizes, path, value) for path, value in flags.items()}
        except ParamcountError as error:
            self.flag_error, values = error, dict(flags)
        self.constants = {
            name: get_size(sizes, name)
            for expression in sweep.expressions.values()
            for name in expression.names
            if name not in self.varying
        }
        self.validator = Validator(sizes, values, self.varying)
        paths = list_paths(sizes)
        counted = [name for name in sweep.columns if name not in paths]
        self.counter = Counter(sizes, sweep.model.reading, values, self.varying, counted)

    def chunks(self, invalid: bool, size: int) -> Iterator[SweepChunk]:
        """The combinations in chunks."""
        for axes in split_axes(self.axes, size):
            n = prod(map(len, axes.values()))
            values, is_computed = self.compute_values(axes)
            clipped, is_inside = self.validator.clip(values)
            is_valid = is_computed & is_inside
            is_valid = is_valid & (self.flag_error is None and self.validator.find_valid(clipped))
            rows = Rows(tuple(map(len, axes.values())), is_valid)
            if invalid:
                yield SweepChunk(self.list_invalid(rows, values), n, n - rows.n_valid)
            else:
                yield SweepChunk(self.count(rows, clipped), n, n - rows.n_valid)

    def compute_values(self, axes: Mapping[str, Any]) -> tuple[Arrays, Any]:
        """The values of the varying sizes as arrays with one axis per swept size, and which rows divide by no zero."""
        import numpy as np

        values: Arrays = {}
        for i, (path, array) in enumerate(axes.items()):
            values[path] = array.reshape([-1 if i == j else 1 for j in range(len(axes))])
        is_computed = np.ones((), dtype=bool)
        for path, expression in self.sweep.expressions.items():
            value, is_broken = evaluate_arrays(expression.tree, self.constants | values)
            array = np.asarray(value)
            values[path] = array.reshape((1,) * (len(axes) - array.ndim) + array.shape)
            is_computed = is_computed & ~np.asarray(is_broken, dtype=bool)
        return values, is_computed

    def count(self, rows: Rows, values: Arrays) -> Arrays:
        """The columns of the valid rows."""
        if not rows.n_valid:
            names = (*self.flags, *self.varying, *self.sweep.columns)
            return {name: rows.fill(self.flags.get(name, 0)) for name in names}
        counts = count_columns(self.counter, rows, values)
        sizes = {**self.flags, **{path: rows.select(values[path]) for path in self.varying}}
        columns = {path: rows.fill(value) if path in self.flags else value for path, value in sizes.items()}
        for name in self.sweep.columns:
            if name not in columns:
                columns[name] = counts[name] if name in counts else rows.fill(get_size(self.sweep.model.sizes, name))
        return columns

    def list_invalid(self, rows: Rows, values: Arrays) -> Arrays:
        """The sizes of the invalid rows, and the reasons."""
        import numpy as np

        others = Rows(rows.shape, ~np.broadcast_to(rows.is_valid, rows.shape))
        sizes = {path: others.select(values[path]) for path in self.varying}
        columns = {path: others.fill(value) for path, value in self.flags.items()} | sizes
        numbers = [array.tolist() for array in sizes.values()]
        reasons = [self.explain(dict(zip(sizes, row))) for row in zip(*numbers)] if sizes else []
        if not sizes and others.n_valid:
            reasons = [self.explain({})]
        columns[REASON] = np.array(reasons, dtype=object)
        return columns

    def explain(self, row: Mapping[str, int]) -> str:
        """Why a row is invalid."""
        if self.flag_error is not None:
            return str(self.flag_error)
        values = {**self.constants, **row}
        for path, expression in self.sweep.expressions.items():
            if evaluate(expression.tree, values) is None:
                return f"{path} = {expression.text} divides by zero"
        error = self.validator.find_error(row)
        names = {path: path for path in (*self.flags, *self.varying)}
        return "" if error is None else str(error.rename(make_size_names(self.sweep.model, names)))


def as_array(values: Sequence[Any]) -> Any:
    """Integers as an int64 array, or as an array of Python ints if one does not fit."""
    import numpy as np

    try:
        return np.asarray(values, dtype="int64")
    except OverflowError:
        return np.asarray(values, dtype=object)


def split_axes(axes: Mapping[str, Sequence[Any]], size: int) -> Iterator[Arrays]:
    """The grid of some axes in blocks of at most `size` points, in order: {axis: int64 array}."""
    arrays = {path: as_array(values) for path, values in axes.items()}
    lengths = [len(array) for array in arrays.values()]
    split = next((i for i in range(len(lengths)) if prod(lengths[i + 1 :]) <= size), 0)
    step = max(1, size // prod(lengths[split + 1 :])) if lengths else 1
    names = list(arrays)
    for leading in product(*(range(n) for n in lengths[:split])):
        block = {path: arrays[path][i : i + 1] for path, i in zip(names, leading)}
        if not lengths:
            yield block
            return
        for start in range(0, lengths[split], step):
            tail = {path: arrays[path] for path in names[split + 1 :]}
            yield block | {names[split]: arrays[names[split]][start : start + step]} | tail
