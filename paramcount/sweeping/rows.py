"""The counts of many rows of sizes, one structure at a time."""

from __future__ import annotations

from math import prod
from typing import Any

from paramcount.huggingface.partial import find_distinct
from paramcount.huggingface.validity import Validator
from paramcount.sweeping.columns import Counter
from paramcount.symbolic.compiled import evaluate_polynomial

Arrays = dict[str, Any]  # {column: array}


class Rows:
    """The rows of a chunk: the shape of the grid, and which of its points are valid."""

    def __init__(self, shape: tuple[int, ...], is_valid: Any) -> None:
        import numpy as np

        self.shape, self.is_valid = shape, is_valid
        self.are_all_valid = bool(np.all(is_valid))
        self.mask = None if self.are_all_valid else np.broadcast_to(is_valid, shape).reshape(-1)
        self.n_valid = prod(shape) if self.mask is None else int(self.mask.sum())

    def select(self, array: Any) -> Any:
        """The values of the valid rows. Shape: [n_valid]."""
        import numpy as np

        flat = np.broadcast_to(array, self.shape).reshape(-1)
        return flat if self.mask is None else flat[self.mask]

    def fill(self, value: object) -> Any:
        """One value for all valid rows."""
        import numpy as np

        if type(value) in (int, bool):
            return np.full(self.n_valid, value)
        column = np.empty(self.n_valid, dtype=object)
        column.fill(value)
        return column


def count_columns(counter: Counter, rows: Rows, values: Arrays) -> Arrays:
    """The counts of the valid rows. `values`: arrays of the varying sizes that broadcast to the shape of the rows."""
    import numpy as np

    if counter.concrete is None:
        position = 0 if rows.mask is None else int(rows.mask.argmax())
        index = np.unravel_index(position, rows.shape)
        example = {path: int(np.broadcast_to(array, rows.shape)[index]) for path, array in values.items()}
        counter.concrete = counter.find_concrete(example)
    if not counter.concrete and not (first := counter.formulas[()][0]).conditions:
        only = first.formulas.items()
        return {name: as_integers(rows.select(evaluate_polynomial(f, values))) for name, f in only}
    selected = {path: rows.select(array) for path, array in values.items()}
    distinct = find_distinct([selected[path] for path in counter.concrete])
    columns: Arrays = {}
    for code, key in enumerate(distinct.combinations):
        positions = np.flatnonzero(np.broadcast_to(distinct.codes == code, rows.n_valid))
        here = {path: array[positions] for path, array in selected.items()}
        for is_variant, formulas in counter.split_rows(key, here, len(positions)):
            part_sizes = {path: array[is_variant] for path, array in here.items()}
            for name, formula in formulas.items():
                part = evaluate_polynomial(formula, part_sizes)
                column = columns.setdefault(name, np.empty(rows.n_valid, dtype="int64"))
                if part.dtype == object and column.dtype != object:
                    column = columns[name] = column.astype(object)
                column[positions[is_variant]] = part
    return {name: as_integers(column) for name, column in columns.items()}


def as_integers(column: Any) -> Any:
    """Python ints as int64 if all of them fit."""
    if column.dtype == object and (not column.size or int(column.max()) < 2**63):
        return column.astype("int64")
    return column


def count_rows(validator: Validator, counter: Counter, values: Arrays) -> tuple[Any, Arrays]:
    """Which rows are valid, and the columns of those. `values`: arrays of the varying sizes, one value per row."""
    import numpy as np

    clipped, is_inside = validator.clip(values)
    is_valid = np.broadcast_to(is_inside & validator.find_valid(clipped), next(iter(values.values())).shape)
    rows = Rows(is_valid.shape, is_valid)
    return is_valid, count_columns(counter, rows, clipped) if rows.n_valid else {}
