"""Functions of sizes, evaluated once for each distinct combination of the sizes that they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from paramcount.sizes import Sizes, inner_configs

T = TypeVar("T")
MOST_RESULTS = 1_000_000  # that one function keeps


class MissingSizeError(Exception):
    """A function read a varying size whose value it was not given."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def report_missing(path: str) -> NoReturn:
    raise MissingSizeError(path)


def split_sizes(
    sizes: Sizes, values: Mapping[str, Any], missing: Sequence[str]
) -> tuple[Any, dict[str, dict[str, Any]]]:
    """The sizes with other values, as an object with the methods of their architecture, without the missing sizes.

    Args:
        sizes: The sizes of a model.
        values: {path: value} of the sizes that differ: ints, symbols or anything else.
        missing: The paths of the missing sizes, such as "vision.d_model".

    Reading one of the missing sizes raises MissingSizeError.

    Returns: The object, and {path: the sizes of its block} of the missing sizes.
    """
    slots: dict[str, dict[str, Any]] = {}

    def build(block: Any, prefix: str) -> Any:
        fields = {}
        absent = [path.removeprefix(prefix) for path in missing if path.rpartition(".")[0] == prefix[:-1]]
        architecture: type[Sizes] = type(block)
        inner = inner_configs(architecture)
        for name, value in block.__dict__.items():
            path = prefix + name
            if name in inner and value is not None and path not in values:
                fields[name] = build(value, f"{path}.")
            elif name not in absent:
                fields[name] = values.get(path, value)
        partial = architecture.make(fields, lambda name: report_missing(prefix + name))
        slots.update((prefix + name, partial.__dict__) for name in absent)
        return partial

    return build(sizes, ""), slots


class Distinct(NamedTuple):
    """The distinct combinations of some sizes in a table, and which of them each row has."""

    combinations: list[tuple[int, ...]]
    codes: Any  # int64 array, of the common shape of the sizes' arrays

    def take(self, results: Sequence[Any]) -> Any:
        """The result of each row's combination. Shape: that of `codes`."""
        import numpy as np

        return np.asarray(results)[self.codes]


def find_distinct(arrays: Sequence[Any]) -> Distinct:
    """The distinct combinations of values of arrays that broadcast."""
    import numpy as np
    import pandas

    if not arrays:
        return Distinct([()], np.zeros((), dtype="int64"))
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    codes = np.zeros(1, dtype="int64")
    columns: list[Any] = []
    for array in arrays:
        values, uniques = pandas.factorize(array.reshape(-1), use_na_sentinel=False)
        positions = np.broadcast_to(values.reshape(array.shape), shape).reshape(-1)
        codes, pairs = pandas.factorize(codes * len(uniques) + positions)
        columns = [column[pairs // len(uniques)] for column in columns]
        columns.append(uniques[pairs % len(uniques)])
    return Distinct(list(zip(*(column.tolist() for column in columns))), codes.reshape(shape))


class Evaluator(Generic[T]):
    """A function of sizes, with its results for the combinations of sizes that it read.

    `function` takes {path: value} of the varying sizes, and raises MissingSizeError if it reads others.
    """

    def __init__(self, function: Callable[[Mapping[str, int]], T]) -> None:
        self.function = function
        self.paths: tuple[str, ...] = ()  # of the varying sizes that it has read so far
        self.results: dict[tuple[int, ...], T] = {}

    def evaluate(self, values: Mapping[str, Any]) -> tuple[Distinct, list[T]]:
        """The distinct combinations of the sizes that it reads, and its result for each. `values`: int64 arrays."""
        while True:
            distinct = find_distinct([values[path] for path in self.paths])
            try:
                return distinct, [self.evaluate_one(combination) for combination in distinct.combinations]
            except MissingSizeError as error:
                self.paths, self.results = (*self.paths, error.path), {}

    def evaluate_row(self, values: Mapping[str, int]) -> T:
        """Its result for one row. `values`: ints by path."""
        while True:
            try:
                return self.evaluate_one(tuple(values[path] for path in self.paths))
            except MissingSizeError as error:
                self.paths, self.results = (*self.paths, error.path), {}

    def evaluate_one(self, combination: tuple[int, ...]) -> T:
        if combination in self.results:
            return self.results[combination]
        result = self.function(dict(zip(self.paths, combination)))
        if len(self.results) >= MOST_RESULTS:
            self.results.clear()
        self.results[combination] = result
        return result
