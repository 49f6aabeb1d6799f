"""Counts of the rows of a DataFrame, each of which is a config.json of one model type."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from paramcount.architectures import architecture as architecture_of
from paramcount.counting import COMPONENTS
from paramcount.errors import (
    ConfigWarning,
    ParamcountError,
    count_noun,
    describe_value,
    find_nearest,
    list_names,
    show_warnings,
)
from paramcount.huggingface.config import find_architecture, get_class_name, get_model_type
from paramcount.huggingface.fields import ConfigField, list_fields
from paramcount.huggingface.partial import find_distinct
from paramcount.huggingface.validity import Validator, find_limits
from paramcount.loading import load
from paramcount.sizes import Sizes, inner_configs
from paramcount.sizes.settings import get_config_class, get_settings
from paramcount.sizes.single_layers import PER_LAYER
from paramcount.sizes.validation import parse_fields
from paramcount.sweeping.columns import COUNTS, Counter
from paramcount.sweeping.documents import DocumentReader
from paramcount.sweeping.rows import Rows, count_columns
from paramcount.zoo import count_model
from paramcount.zoo.aliases import find_by_heading

if TYPE_CHECKING:
    import pandas

REASON = "reason"
MOST_INTEGER = 2**63 - 1
MOST_EXACT = 2**53
MISSING: Any = object()  # a value that a row does not have
INTEGER = "integer"  # the label of every integer, whatever its value
FEWEST_ROWS = 4  # of one structure for which arrays are worth while
Arrays = dict[str, Any]
Document = dict[str, Any]


def count_rows_of_frame(frame: pandas.DataFrame, architecture: str, columns: object, keep: object) -> pandas.DataFrame:
    """The frame with a column for each count, and the reason why a row has none.

    Raises: ParamcountError for an unknown architecture or column.
    """
    import numpy as np
    import pandas

    columns = check_columns(list_words(columns, "columns"))
    names = find_keys(list(frame.columns), architecture, list_words(keep, "keep"))
    counts = {name: np.zeros(len(frame), dtype="int64") for name in columns}
    reasons = np.full(len(frame), None, dtype=object)
    values = {key: list_values(frame[name], is_integer_key(architecture, key)) for name, key in names.items()}
    show_warnings([describe_missing(name, values[key]) for name, key in names.items() if MISSING in values[key]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfigWarning)  # one per row
        for shared, integers, rows in group_rows(values, len(frame)):
            document = {**shared, "model_type": architecture}
            is_pending = np.ones(len(rows), dtype=bool)
            if len(rows) >= FEWEST_ROWS and integers:
                is_pending = count_group(document, integers, rows, counts)
            count_one_by_one(document, integers, rows, is_pending, counts, reasons)
    is_missing = np.array([reason is not None for reason in reasons], dtype=bool)
    result = frame.copy()
    for name, column in counts.items():
        result[name] = pandas.arrays.IntegerArray(column, is_missing.copy())
    result[REASON] = pandas.Series(reasons, index=result.index, dtype=object)
    return result


def describe_missing(name: object, column: Sequence[Any]) -> str:
    """The warning for a column without a value in some rows."""
    rows = [i for i, value in enumerate(column) if value is MISSING]
    listed = ", ".join(map(str, rows[:5])) + (", …" if len(rows) > 5 else "")
    where = f"{count_noun(len(rows), 'row')} of {len(column):,} (position {listed})"
    return f"column {describe_value(name)} has no value in {where}; it is counted as a missing key"


def list_words(names: object, where: str) -> tuple[Any, ...]:
    """The names in a list. Raises: ParamcountError for a string, whose letters are no names."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ParamcountError(f"= {describe_value(names)}", where=where, expected="a list of names")
    return tuple(names)


def check_columns(columns: tuple[Any, ...]) -> tuple[str, ...]:
    """The names of counts. Raises: ParamcountError for any other name."""
    known = (*COUNTS, *COMPONENTS)
    for name in columns:
        if name not in known:
            raise ParamcountError(
                f"unknown column {describe_value(name)}",
                expected=list_names(known, name),
                nearest=find_nearest(name, known),
            )
    return columns


def find_keys(names: Sequence[Any], architecture: str, keep: Sequence[str]) -> dict[Any, str]:
    """{column: config.json key}. A column is a size, a config.json key or a table heading.

    Raises: ParamcountError for a column that is none of these and not in `keep`, and for two columns with one key.
    """
    keys: dict[Any, str] = {}
    fields, known = list_main_keys(architecture), list_known_keys(architecture)
    for name in names:
        if name in keep:
            continue
        headings = find_by_heading(name, fields) if isinstance(name, str) else []
        key = name if name in known else fields.get(name) or (fields[headings[0]] if len(headings) == 1 else None)
        if key is None:
            raise ParamcountError(
                f"column {describe_value(name)} is not a size of {architecture}",
                expected=f"{list_names(fields, str(name))}; columns that are not sizes in keep",
                nearest=find_nearest(name, (*fields, *known)),
            )
        if key in keys.values():
            raise ParamcountError(f"column {describe_value(name)} is {key} again", expected="one column for each size")
        keys[name] = key
    return keys


def list_fields_of(model_type: str) -> list[ConfigField]:
    """The fields of a model type. Raises: ParamcountError for an unknown one."""
    return list(list_fields(architecture_of(get_model_type({"model_type": model_type}))))


@cache
def list_main_keys(architecture: str) -> dict[str, str]:
    """{field: the key that it is read from first} of the fields of a model type that have a key at the top level."""
    first = {field.name: field.spellings[0] for field in list_fields_of(architecture) if field.spellings}
    return {name: spelling.path for name, spelling in first.items() if "." not in spelling.path}


@cache
def list_known_keys(architecture: str) -> frozenset[str]:
    """The config.json keys of a model type: those of sizes, and those that the reference's config class declares."""
    keys = {spelling.name for field in list_fields_of(architecture) for spelling in field.spellings}
    config_class = get_config_class(architecture)
    return frozenset(keys.union(["architectures"], get_settings(config_class).letters if config_class else ()))


def is_integer_key(architecture: str, key: str) -> bool:
    """Whether a key is an integer, so that 32.0, which pandas makes of 32 beside a missing value, is one too."""
    config_class = get_config_class(architecture)
    letters = get_settings(config_class).letters.get(key, "i") if config_class else "i"
    return "i" in letters and "f" not in letters


def list_values(column: Any, is_integer: bool) -> list[Any]:
    """The values of a column as config.json has them; MISSING for NaN, NA and None."""
    if column.dtype.kind in "iub" and not column.hasnans:
        return list(column.tolist())
    missing = column.isna().tolist()
    return [
        MISSING if is_missing else as_plain(value, is_integer) for value, is_missing in zip(column.tolist(), missing)
    ]


def as_plain(value: Any, is_integer: bool) -> Any:
    """A value without NumPy's types; a whole number of an integer key as an int."""
    if hasattr(value, "tolist") and not isinstance(value, (str, bytes)):
        value = value.tolist()
    if is_integer and type(value) is float and value.is_integer() and abs(value) <= MOST_EXACT:
        return int(value)
    return value


def group_rows(values: Mapping[str, list[Any]], n: int) -> Iterator[tuple[Document, Arrays, Any]]:
    """Rows that share everything but integers: (what they share, {key: int64 array}, the rows).

    Rows differ in a group only in keys whose values are integers in all of them.
    """
    import numpy as np

    kinds: dict[str, Any] = {}
    integers: Arrays = {}
    for key, column in values.items():
        types = set(map(type, column))
        if types == {int} and min(column) >= -MOST_INTEGER and max(column) <= MOST_INTEGER:
            integers[key] = np.array(column, dtype="int64")
        elif types == {bool}:
            kinds[key] = np.array(column)
        else:
            is_whole = [type(value) is int and abs(value) <= MOST_INTEGER for value in column]
            integers[key] = np.array([value if whole else 0 for value, whole in zip(column, is_whole)], dtype="int64")
            labels = [INTEGER if whole else f"{type(value)} {value!r}" for value, whole in zip(column, is_whole)]
            kinds[key] = np.array(labels, dtype=object)
    distinct = find_distinct(list(kinds.values())) if kinds else None
    codes = np.zeros(n, dtype="int64") if distinct is None else distinct.codes
    for code in range(1 if distinct is None else len(distinct.combinations)):
        rows = (codes == code).nonzero()[0]
        if not len(rows):
            continue
        first = int(rows[0])
        keys = [key for key in integers if key not in kinds or kinds[key][first] == INTEGER]
        shared = {key: column[first] for key, column in values.items() if key not in keys}
        document = {key: value for key, value in shared.items() if value is not MISSING}
        yield document, {key: integers[key][rows] for key in keys}, rows


def count_group(document: Document, integers: Arrays, rows: Any, counts: Arrays) -> Any:
    """Count the rows of a group on arrays; which of them could not be counted so, as a bool array.

    A row that is counted passes every check that reads its integers, and a row of its structure was counted by itself.
    """
    import numpy as np

    is_pending = np.ones(len(rows), dtype=bool)
    architecture = architecture_of(find_architecture(get_model_type(document), get_class_name(document)))
    if inner_configs(architecture) or architecture.section or PER_LAYER in document:
        return is_pending
    fields, here = DocumentReader(architecture, document, tuple(integers)).read(integers)
    structural = [name for name, array in fields.items() if array.dtype == object]
    distinct = find_distinct([fields[name] for name in structural])
    for code in range(len(distinct.combinations)):
        inside = (np.broadcast_to(distinct.codes, here.shape) == code).nonzero()[0]
        if len(inside):
            part = {name: array[inside] for name, array in fields.items()}
            done = count_structure(architecture, document, integers, part, structural, here[inside], rows, counts)
            is_pending[done] = False
    return is_pending


def count_structure(
    architecture: type[Sizes],
    document: Document,
    integers: Arrays,
    fields: Arrays,
    structural: Sequence[str],
    here: Any,
    rows: Any,
    counts: Arrays,
) -> Any:
    """Count rows with the same flags; the positions that were counted. `here`: positions of `fields` in the group."""
    import numpy as np

    nothing = np.zeros(0, dtype="int64")
    first = {name: array[0] if name in structural else int(array[0]) for name, array in fields.items()}
    try:
        sizes = parse_fields(architecture, first)
    except ParamcountError:
        return nothing
    varying = tuple(name for name in fields if name not in structural and find_limits(sizes, name))
    if any(name not in varying and name not in structural for name in fields):
        return nothing
    validator = Validator(sizes, {}, varying)
    values = {name: fields[name] for name in varying}
    clipped, is_inside = validator.clip(values)
    valid = np.broadcast_to(is_inside & validator.find_valid(clipped), here.shape).nonzero()[0]
    if not len(valid):
        return nothing
    example = make_document(document, integers, int(here[valid[0]]))
    try:
        model = load(example)  # checks what depends on the document but not on its integers
    except ParamcountError:
        return nothing
    counter = Counter(sizes, model.reading, {}, varying, tuple(counts))
    columns = count_columns(counter, Rows((len(valid),), True), {name: array[valid] for name, array in values.items()})
    fits = np.ones(len(valid), dtype=bool)
    for column in columns.values():
        fits &= np.asarray(column <= MOST_INTEGER, dtype=bool)
    positions = here[valid[fits]]
    for name, column in columns.items():
        counts[name][rows[positions]] = column[fits].astype("int64")
    return positions


def make_document(document: Document, integers: Arrays, position: int) -> Document:
    """The config.json of one row of a group."""
    return {**document, **{key: int(array[position]) for key, array in integers.items()}}


def count_one_by_one(
    document: Document, integers: Arrays, rows: Any, is_pending: Any, counts: Arrays, reasons: Any
) -> None:
    """Count the pending rows of a group by themselves, or note why they have no count."""
    for position in is_pending.nonzero()[0]:
        row = rows[position]
        try:
            count = count_model(load(make_document(document, integers, int(position))))
            for name, column in counts.items():
                value = count.components[name] if name in COMPONENTS else getattr(count, name)
                if value > MOST_INTEGER:
                    raise ParamcountError("= 2⁶³ or more does not fit the column", where=name)
                column[row] = value
        except ParamcountError as error:
            reasons[row] = str(error)
