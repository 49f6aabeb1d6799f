"""Columns of a sweep as polynomials in the sizes that vary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from paramcount.costs.caches import count_growth, count_states, list_flow_groups, merge_groups
from paramcount.costs.dtypes import parse_kv_dtype
from paramcount.counting import COMPONENTS
from paramcount.counting.count import build_count
from paramcount.counting.sum_weights import STRUCTURE_ERRORS, sum_weights
from paramcount.errors import ParamcountError
from paramcount.huggingface.partial import split_sizes
from paramcount.sizes import Sizes, inner_configs, list_fixed_paths
from paramcount.sizes.reading import Reading, keep_documents, with_document
from paramcount.symbolic.compiled import evaluate_polynomial
from paramcount.symbolic.polynomials import Condition, Polynomial, decide_by, make_symbols
from paramcount.zoo import Model
from paramcount.zoo.aliases import find_column
from paramcount.zoo.what_if import list_paths, resolve_path

REFERENCE_TOTAL = "reference_total"
COUNTS = (
    "total", REFERENCE_TOTAL, "active", "active_min", "non_embedding", "active_non_embedding",
    "active_without_input_embedding", "language_model", "buffers", "mtp", "mtp_buffers", "bytes_fp32", "bytes_bf16",
)  # fmt: skip
CACHES = {"kv_per_token": count_growth, "state": count_states}
COLUMNS = (*COUNTS, *COMPONENTS, *CACHES)
DEFAULT_COLUMNS = ("total", "active")
BF16 = parse_kv_dtype("bf16")

Formulas = Mapping[str, Polynomial | int]  # {column: its value}


class ColumnVariant(NamedTuple):
    """The columns of rows in which the same sizes are equal."""

    formulas: Formulas
    conditions: tuple[Condition, ...]


def find_columns(model: Model, names: Iterable[str]) -> tuple[str, ...]:
    """The columns that names, config.json keys or headings refer to, each once: counts, caches and sizes of the model.

    Raises: ParamcountError for any other name, with the nearest ones.
    """
    paths = list_paths(model.sizes)
    found = []
    for name in names:
        try:
            found.append(find_column(name.strip(), (*COLUMNS, *paths)))
        except ParamcountError:
            try:
                found.append(resolve_path(model.sizes, name.strip()))
            except ParamcountError:
                found.append(find_column(name.strip(), (*COLUMNS, *paths)))
    return tuple(dict.fromkeys(found))


class Counter:
    """The columns of a model whose sizes vary.

    The declaration runs once for each structure, with symbols for the varying sizes. If the structure depends on the
    value of a size, that size is a number, and the declaration runs once for each of its values. If it depends on which
    sizes are equal, it runs once for the rows in which they are, and once for the others.

    Args:
        sizes: The sizes of the model.
        reading: How its config was read.
        values: {path: value} of the sizes that differ from the model's and do not vary.
        varying: The paths of the varying sizes.
        columns: The counts and caches to compute.
    """

    def __init__(
        self,
        sizes: Sizes,
        reading: Reading,
        values: Mapping[str, Any],
        varying: Sequence[str],
        columns: Sequence[str],
    ) -> None:
        self.sizes, self.reading, self.values = sizes, reading, values
        self.varying, self.columns = tuple(varying), columns
        self.concrete: tuple[str, ...] | None = None  # unknown before the first count
        self.formulas: dict[tuple[int, ...], list[ColumnVariant]] = {}  # {values of the sizes in `concrete`: …}

    def find_concrete(self, example: Mapping[str, int]) -> tuple[str, ...]:
        """The smallest set of sizes that must be numbers, so that the others can be symbols. `example`: a valid row."""
        for paths in list_subsets(self.varying):
            try:
                variant = self.derive(paths, example)
            except STRUCTURE_ERRORS:
                continue
            self.formulas[tuple(example[path] for path in paths)] = [variant]
            return paths
        return self.varying

    def derive(self, concrete: Sequence[str], example: Mapping[str, int]) -> ColumnVariant:
        """The columns as polynomials in the varying sizes that are not in `concrete`. `example`: a valid row.

        Raises: one of STRUCTURE_ERRORS if the structure depends on the value of such a size.
        """
        with decide_by(example) as decisions:
            formulas = self.derive_formulas({path: example[path] for path in concrete})
        return ColumnVariant(formulas, decisions.conditions)

    def derive_variant(self, example: Mapping[str, int]) -> ColumnVariant:
        """The columns of the rows in which the same sizes are equal as in `example`, or of rows like this one only."""
        concrete = self.concrete or ()
        try:
            return self.derive(concrete, example)
        except STRUCTURE_ERRORS:
            formulas, _ = self.derive(self.varying, example)
            others = [path for path in self.varying if path not in concrete]
            same = tuple(Condition(make_symbols(path)[0] - example[path], is_zero=True) for path in others)
            return ColumnVariant(formulas, same)

    def derive_formulas(self, numbers: Mapping[str, int]) -> Formulas:
        """The columns as polynomials in the varying sizes that are not in `numbers`."""
        symbols = {path: make_symbols(path)[0] for path in self.varying if path not in numbers}
        values = {**self.values, **numbers, **symbols}
        sizes, _ = split_sizes(self.sizes, values, ())
        head = self.reading.head
        formulas: dict[str, Any] = {}
        if REFERENCE_TOTAL in self.columns:
            built, _ = split_sizes(self.sizes, values | list_fixed_paths(self.sizes), ())
            formulas[REFERENCE_TOTAL] = sum(sum_weights(built, head).components.values())
        if any(name not in CACHES for name in self.columns):
            count = build_count(sum_weights(sizes, head), None, "", head)
            for name in self.columns:
                if name not in CACHES and name != REFERENCE_TOTAL:
                    formulas[name] = count.components[name] if name in COMPONENTS else getattr(count, name)
        if any(name in CACHES for name in self.columns):
            self.add_settings(sizes, self.sizes, self.reading.document, has_symbols=bool(symbols))
            groups = merge_groups(list_flow_groups(sizes, head))
            formulas |= {name: CACHES[name](groups, BF16) for name in self.columns if name in CACHES}
        return formulas

    def add_settings(self, symbolic: Any, sizes: Sizes, document: Mapping[str, Any], *, has_symbols: bool) -> None:
        """Give symbolic sizes the settings of a changed model, those of inner configs included.

        Raises: ParamcountError if a setting depends on the value of a symbol.
        """
        keep_documents(symbolic, document, "")
        if has_symbols and find_known(symbolic) != find_known(with_document(sizes, document)):
            raise ParamcountError("a setting depends on a size")

    def split_rows(self, key: tuple[int, ...], values: Mapping[str, Any], n: int) -> Iterator[tuple[Any, Formulas]]:
        """(which rows, their columns) for the rows with these values of the sizes in `concrete`.

        Args:
            key: The values of the sizes in `concrete`.
            values: {path: array of the varying sizes, one value per row}.
            n: The number of rows.
        """
        import numpy as np

        variants = self.formulas.setdefault(key, [])
        is_pending = np.ones(n, dtype=bool)
        position = 0
        while is_pending.any():
            if position == len(variants):
                first = int(is_pending.argmax())
                example = {path: int(array[first]) for path, array in values.items()}
                variants.append(self.derive_variant(example))
            formulas, conditions = variants[position]
            position += 1
            is_here = is_pending
            for condition in conditions:
                is_here = is_here & ((evaluate_polynomial(condition.difference, values) == 0) == condition.is_zero)
            is_pending = is_pending & ~is_here
            if is_here.any():
                yield is_here, formulas


def find_known(sizes: Sizes) -> list[object]:
    """The names of the settings that are known, those of parts included."""
    parts = (getattr(sizes, name) for name in inner_configs(type(sizes)))
    return [*sizes.settings, *(find_known(part) for part in parts if isinstance(part, Sizes))]


def list_subsets(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Sets of sizes, smaller ones first; of the larger sets only the numbers of layers, heads and experts."""
    numbers = tuple(path for path in paths if path.rpartition(".")[2].startswith("n_"))
    ordered = (*numbers, *(path for path in paths if path not in numbers))
    for n in range(min(3, len(paths))):
        yield from combinations(ordered, n)
    yield numbers
