"""The sizes of many config.json documents at once, which differ in the integers of some keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from paramcount.errors import ParamcountError
from paramcount.huggingface.fields import (
    ConfigField,
    RecordingConfig,
    check_layer_types,
    derive_value,
    list_fields,
    read_field,
)
from paramcount.huggingface.partial import Evaluator, MissingSizeError
from paramcount.sizes import LARGEST, Condition, Sizes

KEY, FIELD = "key ", "field "  # prefixes of the names of values: a key of the document, or a field that was read
Arrays = dict[str, Any]


class PartialMapping(RecordingConfig):
    """A mapping of which some values are missing. Reading one of those raises MissingSizeError."""

    def __init__(self, content: Mapping[str, Any], missing: frozenset[str], prefix: str) -> None:
        super().__init__(content)
        self.missing, self.prefix = missing, prefix

    def check(self, key: object) -> None:
        if key in self.missing:
            raise MissingSizeError(self.prefix + str(key))

    def __getitem__(self, key: str) -> Any:
        self.check(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.check(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.check(key)
        return super().__contains__(key)

    def copy(self) -> NoReturn:
        raise MissingSizeError(self.prefix + min(self.missing, default=""))


def read_whole(name: str) -> Callable[[PartialMapping], Any]:
    """The method of a mapping that reads all of it: MissingSizeError for the first value that is missing."""

    def read(self: PartialMapping) -> Any:
        for key in sorted(self.missing):
            self.check(key)
        return getattr(super(PartialMapping, self), name)()

    return read


for name in ("__iter__", "__len__", "keys", "values", "items"):
    setattr(PartialMapping, name, read_whole(name))


Function = Callable[[PartialMapping, PartialMapping], Any]  # of the document and of the fields


class PartialFunction:
    """A function of a document and of the fields, as a function of the values that it reads."""

    def __init__(self, function: Function, document: Mapping[str, Any], names: tuple[str, ...]) -> None:
        self.function, self.document, self.names = function, document, names
        self.given: tuple[str, ...] | None = None

    def prepare(self, given: tuple[str, ...]) -> None:
        """Make the mappings for the values with these names."""
        self.given = given
        missing = [name for name in self.names if name not in given]
        self.mappings = [
            PartialMapping(
                content, frozenset(name.removeprefix(prefix) for name in missing if name.startswith(prefix)), prefix
            )
            for prefix, content in ((KEY, self.document), (FIELD, {}))
        ]
        self.targets = [(self.mappings[name.startswith(FIELD)], name.partition(" ")[2]) for name in given]

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """The result, or the error that the function raises."""
        if tuple(values) != self.given:
            self.prepare(tuple(values))
        for (mapping, name), value in zip(self.targets, values.values()):
            dict.__setitem__(mapping, name, value)
        try:
            return self.function(*self.mappings)
        except ParamcountError as error:
            return error


class DocumentReader:
    """Reads the sizes of an architecture without parts from documents that share everything but some integers.

    Args:
        architecture: It has no section and no inner configs.
        document: What the documents share.
        keys: The keys whose integers differ.
    """

    def __init__(self, architecture: type[Sizes], document: Mapping[str, Any], keys: Sequence[str]) -> None:
        self.architecture, self.document, self.keys = architecture, document, tuple(keys)

    def read(self, values: Arrays) -> tuple[Arrays, Any]:
        """The fields of every document that can be read, and their rows. `values`: {key: int64 array}.

        A field whose values are not all integers is an array of objects.
        """
        import numpy as np

        known: Arrays = {KEY + key: values[key] for key in self.keys}
        rows = np.arange(len(next(iter(known.values()))))
        fields: list[str] = []
        for field in list_fields(self.architecture):
            name = FIELD + field.name
            if key := self.find_plain_key(field):
                known = {**known, name: known[KEY + key]}
                if field.least is not None:
                    known, rows = select_rows(known, rows, (known[name] >= field.least) & (known[name] <= LARGEST))
            else:
                known, rows = self.apply(partial(self.read_one, field), known, rows, name)
            fields.append(field.name)
        conditions: tuple[Condition, ...] = self.architecture.conditions
        if not self.architecture.own_layer_types:
            conditions = (check_layer_types, *conditions)
        for condition in conditions:
            known, rows = self.apply(partial(self.check_one, condition), known, rows, "")
        return {name: known[FIELD + name] for name in fields}, rows

    def find_plain_key(self, field: ConfigField) -> str:
        """The key whose integers `read_field` returns as they are; empty if a field is read in any other way."""
        if field.n_aliases:
            return ""
        first = next(
            (s for s in field.spellings if not s.is_plain or s.name in self.keys or s.name in self.document), None
        )
        return first.name if first and first.is_plain and first.name in self.keys and field.at_most is None else ""

    def apply(self, function: Function, known: Arrays, rows: Any, name: str) -> tuple[Arrays, Any]:
        """The known values, with the results of a function under `name` if it has one, without the refused rows."""
        import numpy as np

        evaluator = Evaluator(PartialFunction(function, self.document, tuple(known)))
        distinct, results = evaluator.evaluate(known)
        codes = np.broadcast_to(distinct.codes, rows.shape)
        is_read = [not isinstance(result, ParamcountError) for result in results]
        if name:
            known = {**known, name: take_results(results, codes)}
        return (known, rows) if all(is_read) else select_rows(known, rows, np.asarray(is_read)[codes])

    def read_one(self, field: ConfigField, document: PartialMapping, fields: PartialMapping) -> Any:
        """The value of a field."""
        return read_field(field, document, document, document, fields, str)[0]

    def check_one(self, condition: Condition, document: PartialMapping, fields: PartialMapping) -> None:
        """Check a condition."""
        derive_value(condition, document, fields, str)


def select_rows(known: Arrays, rows: Any, passes: Any) -> tuple[Arrays, Any]:
    """The rows that pass."""
    if passes.all():
        return known, rows
    return {path: array[passes] for path, array in known.items()}, rows[passes]


def take_results(results: Sequence[Any], codes: Any) -> Any:
    """The result of each row: an int64 array if all are integers, otherwise an array of objects."""
    import numpy as np

    found = [result for result in results if not isinstance(result, ParamcountError)]
    if all(type(result) is int and abs(result) < 2**63 for result in found):
        integers = [0 if isinstance(result, ParamcountError) else result for result in results]
        return np.asarray(integers, dtype="int64")[codes]
    objects = np.empty(len(results), dtype=object)
    for i, result in enumerate(results):
        objects[i] = result
    return objects[codes]
