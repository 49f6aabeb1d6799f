"""Counts of an architecture without a model: every size is a symbol, and the caller specifies the flags.

The forward pass of the architecture is run with symbols. Each flag is tried with each of its values: the caller has to
specify a flag if it changes the weights.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from paramcount.architectures.encoders import ENCODERS, find_part
from paramcount.counting.sum_weights import Sums, sum_weights
from paramcount.errors import (
    ParamcountError,
    describe_value,
    find_nearest,
    join_words,
    list_names,
    locate_errors,
    make_choice_error,
    make_printable,
)
from paramcount.huggingface.fields import read_values
from paramcount.sizes import Sizes, Tower, inner_configs
from paramcount.sizes.fields import get_info
from paramcount.symbolic.polynomials import Condition, Polynomial, decide_by, make_symbols

NAMED_PARTS = ("language", "tower")
TRIAL = 6  # the number used for a size that cannot be a symbol and has no default
WALK_ERRORS = (ParamcountError, TypeError, AttributeError, LookupError, ValueError)
Values = Mapping[str, object]  # {path of a field: its value}


class FieldKind(NamedTuple):
    """The values that a field other than a plain size can have."""

    name: str  # flag | words | indices | word | size | language | tower | part | number
    expected: str
    trials: tuple[object, ...]  # values to try; the first is the default


FLAG = FieldKind("flag", "True or False", (False, True))
WORDS = FieldKind("words", "a string per layer", (("?",), ()))
INDICES = FieldKind("indices", "a list of integers", ((0,), (1,), ()))
WORD = FieldKind("word", "a string", ("?", "!"))
LANGUAGE = FieldKind("language", "the name of an architecture", ("llama",))  # any shows which fields are needed
TOWER = FieldKind("tower", join_words(ENCODERS), (next(iter(ENCODERS)),))
PART = FieldKind("part", "None, or True if it exists", (None, True))
SIZE = FieldKind("size", "None, True if it exists, or an integer", (None, True))
NUMBER = FieldKind("number", "an integer, because the structure depends on it", ())


def make_open_sizes(cls: type[Sizes], values: Values, kinds: dict[str, FieldKind], prefix: str = "") -> Sizes:
    """The sizes of an architecture: given values, symbols for other sizes, and the first trial of any other field,
    which is recorded in `kinds`."""

    def find(name: str) -> object:
        path, field, kind = prefix + name, cls.fields[name], find_kind(cls, name)
        if path not in values and not field.is_required:  # as in an entry
            return field.unstated
        value = values.get(path, True)
        if path not in values and kind is not None:
            kinds[path] = kind
            value = kind.trials[0]
        if name in inner_configs(cls):
            if value is None:
                return None
            return make_open_sizes(find_inner_class(cls, name, path, value), values, kinds, f"{path}.")
        return make_symbols(path)[0] if value is True and kind != FLAG else value

    return cls.make({}, find)


def find_inner_class(cls: type[Sizes], name: str, path: str, value: object) -> type[Sizes]:
    inner = inner_configs(cls)[name]
    if inner not in (Sizes, Tower):
        return inner
    with locate_errors(path):
        return find_part(inner, value)


# ---- fields


@cache
def find_kind(cls: type[Sizes], name: str) -> FieldKind | None:
    """The kind of a field; None for a size or a required inner config, which the caller does not have to specify."""
    annotation = get_info(cls, name).annotation
    is_list = getattr(annotation, "__origin__", None) is tuple
    arguments = getattr(annotation, "__args__", None) or (annotation,)
    kinds = [getattr(kind, "__origin__", kind) for kind in arguments]  # without bounds
    if name in inner_configs(cls):
        inner = inner_configs(cls)[name]
        kind = {Sizes: LANGUAGE, Tower: TOWER}.get(inner, PART if type(None) in kinds else None)
        if kind and name in cls.named_parts:
            return kind._replace(trials=(cls.named_parts[name].default["model_type"],))
        return kind
    if is_list:
        return add_usual_values(cls, name, WORDS if kinds[0] is str else INDICES)
    if bool in kinds:
        return FLAG
    if str in kinds:
        return add_usual_values(cls, name, WORD)
    return SIZE if type(None) in kinds else None


def add_usual_values(cls: type[Sizes], name: str, kind: FieldKind) -> FieldKind:
    """The kind with more trials: the default of a field and the values that its architecture supports."""
    default, choices = read_defaults(cls).get(name), list_strings(cls, name)
    trials = [default] if default is not None else []
    if choices:
        trials += choices if kind is WORD else [choices]
    if kind is not WORD or not choices:
        trials += kind.trials
    expected = f"{kind.expected}: {join_words(choices)}" if choices else kind.expected
    return FieldKind(kind.name, expected, tuple(dict.fromkeys(trials)))


@cache
def read_defaults(cls: type[Sizes]) -> Mapping[str, Any]:
    """The sizes that an empty config.json gives, or one of the class without a head; {} if a key is required."""
    documents: tuple[dict[str, Any], ...] = ({}, {"architectures": [cls.base_model]})
    for document in documents:
        try:
            return read_values(cls, document).values
        except WALK_ERRORS:
            pass
    return {}


@cache
def list_strings(cls: type[Sizes], name: str) -> tuple[str, ...]:
    """The valid strings of a field: the choices in the error for an invalid one, otherwise the strings in its default.
    () if there are none."""
    for value in ("?", ("?",)):
        try:
            cls.check(SimpleNamespace(**{**read_defaults(cls), name: value}))  # type: ignore[arg-type]
        except ParamcountError as error:
            if error.where in (name, f"{name}.0") and error.choices:
                return tuple(map(str, error.choices))
        except WALK_ERRORS:
            pass
    default = read_defaults(cls).get(name)
    words = tuple(dict.fromkeys(default)) if isinstance(default, tuple) else ()
    return words if len(words) > 1 and all(isinstance(word, str) for word in words) else ()


# ---- trials


class Trial(NamedTuple):
    """The result of one trial: the sums of the weights, or the error, and the fields that were read."""

    sums: Sums | None
    signature: Hashable  # equal for equal weights; the text of the error if the trial failed
    fields: Mapping[str, FieldKind]
    numbers: tuple[str, ...]  # sizes that cannot be symbols
    conditions: tuple[Condition, ...] = ()  # sizes that were compared, and are not equal


def sum_architecture(cls: type[Sizes], values: Values) -> tuple[Sums, tuple[Condition, ...]]:
    """The sums of the weights of an architecture, as polynomials, and the conditions for them.

    Raises: ParamcountError if a flag that the weights depend on is missing; it names all of them.
    """
    needed: dict[str, FieldKind] = {}
    trials: dict[frozenset[tuple[str, object]], Trial] = {}

    def try_cached(values: Values) -> Trial:
        key = frozenset(values.items())
        if key not in trials:
            trials[key] = try_values(cls, values)
        return trials[key]

    # Start with the first trial of every field, then vary one field at a time, which can reveal more fields. If
    # one more field makes a failed trial succeed, start again from it: the weights may depend on others only then.
    queue: list[Values] = [values]
    visited: set[str] = set()
    while queue:
        context = queue.pop(0)
        base = try_cached(context)
        needed |= dict.fromkeys(base.numbers, NUMBER)
        for path, kind in base.fields.items():
            for value in kind.trials[1:]:
                other = {**context, path: value}
                if try_cached(other).signature != base.signature:
                    needed[path] = kind
                if path not in visited or (base.sums is None and try_cached(other).sums is not None):
                    queue.append(other)
            visited.add(path)
            if kind.name in NAMED_PARTS:
                needed[path] = kind
    # The fields of a part depend on its class, which the caller has to specify first.
    parts = tuple(f"{path}." for path, kind in needed.items() if kind.name in NAMED_PARTS)
    needed = {path: kind for path, kind in needed.items() if not path.startswith(parts)}
    if needed:
        expected = "; ".join(f"{path}: {kind.expected}" for path, kind in needed.items())
        pronoun = "them" if len(needed) > 1 else "it"
        raise ParamcountError(
            f"the weights depend on {join_words(needed, 'and')}; specify {pronoun}", expected=expected
        )
    result = try_cached(values)
    if result.sums is None:
        raise ParamcountError(str(result.signature))
    return result.sums, result.conditions


def try_values(cls: type[Sizes], values: Values) -> Trial:
    """The trial of these values; every other field has its first trial."""
    numbers: dict[str, int] = {}
    while True:
        kinds: dict[str, FieldKind] = {}
        c = make_open_sizes(cls, {**values, **numbers}, kinds)
        try:
            with decide_by(None) as decisions:
                sums = sum_weights(c, True)
        except WALK_ERRORS as error:
            is_short = isinstance(error, IndexError)  # a list, which no number makes longer
            size = "" if is_short else find_required_number(cls, {**values, **numbers}, str(error))
            if not size:
                return Trial(None, str(error), kinds, tuple(numbers))
            numbers[size] = get_default_number(cls, size)
        else:
            tables = (sums.components, sums.active, sums.details, sums.parts, sums.excluded)
            signature = tuple(frozenset(table.items()) for table in tables), sums.tied, frozenset([sums.active_slack])
            return Trial(sums, signature, kinds, tuple(numbers), decisions.conditions)


def find_required_number(cls: type[Sizes], values: Values, failure: str) -> str:
    """The size that must be a number for the forward pass to run, or to get beyond `failure`; "" if none helps."""
    further = ""
    paths = list_symbols(cls, values)
    for path in sorted(paths, key=lambda path: not path.rpartition(".")[2].startswith("n_")):
        try:
            trial = make_open_sizes(cls, {**values, path: get_default_number(cls, path)}, {})
            with decide_by(None):
                sum_weights(trial, True)
        except WALK_ERRORS as error:
            if str(error) != failure:
                further = further or path
            continue
        return path
    return further


def get_default_number(cls: type[Sizes], path: str) -> int:
    n: int = read_defaults(cls).get(path, TRIAL)
    return n


def list_symbols(cls: type[Sizes], values: Values, prefix: str = "") -> Iterator[str]:
    for name in cls.fields:
        path = prefix + name
        kind = find_kind(cls, name)
        if name in inner_configs(cls):
            value = values.get(path, kind.trials[0] if kind else True)
            if value is not None:
                yield from list_symbols(find_inner_class(cls, name, path, value), values, f"{path}.")
        elif path not in values and kind is None:
            yield path


# ---- validation of the caller's values


def check_structure(cls: type[Sizes], structure: Values) -> dict[str, object]:
    """The validated values of the caller: {path of a field: value}.

    Raises: ParamcountError for an unknown field, with the nearest ones, and for an invalid value.
    """
    values: dict[str, object] = {}
    for path in sorted(structure, key=lambda path: path.count(".")):  # a part before its fields
        owner, name = cls, path
        while "." in name:
            part, _, name = name.partition(".")
            if part not in inner_configs(owner):
                raise make_field_error(owner, path, path.removesuffix(f"{part}.{name}"))
            within = path.removesuffix(f".{name}")
            owner = find_inner_class(owner, part, within, values.get(within))
        if name not in owner.fields:
            raise make_field_error(owner, path, path.removesuffix(name))
        value = structure[path]
        values[path] = tuple(value) if isinstance(value, list) else value
        check_value(owner, name, path, values[path])
    return values


def make_field_error(owner: type[Sizes], path: str, within: str) -> ParamcountError:
    """The error for a path that has no field. `within`: the path of `owner` with a dot, "" for the model itself."""
    names = [within + field for field in owner.fields]
    return ParamcountError(
        f"unknown size {make_printable(path, 60)}", expected=list_names(names, path), nearest=find_nearest(path, names)
    )


def check_value(owner: type[Sizes], name: str, path: str, value: object) -> None:
    kind, choices = find_kind(owner, name), list_strings(owner, name)
    if kind and kind.name in NAMED_PARTS:
        find_inner_class(owner, name, path, value)
        return
    is_size = (type(value) is int and value >= 0) or isinstance(value, Polynomial)
    match kind.name if kind else "part" if name in inner_configs(owner) else "":
        case "flag":
            is_valid = isinstance(value, bool)
        case "words":
            is_valid = isinstance(value, tuple) and all(is_choice(item, choices) for item in value)
        case "indices":
            is_valid = isinstance(value, tuple) and all(type(n) is int and n >= 0 for n in value)
        case "word":
            is_valid = value is None or is_choice(value, choices)
        case "size":
            is_valid = is_size or value is None or value is True
        case "part":
            is_valid = value is True or (value is None and kind is not None)
        case _:
            is_valid = is_size or isinstance(value, tuple)  # in a few architectures, one per layer
    if is_valid:
        return
    if kind and kind.name == "words" and isinstance(value, tuple) and choices:
        i, item = next((i, item) for i, item in enumerate(value) if not is_choice(item, choices))
        raise make_choice_error(item, choices, where=f"{path}.{i}")
    expected = kind.expected if kind else "an integer or a symbol"
    raise ParamcountError(f"= {describe_value(value)}", where=path, expected=expected)


def is_choice(value: object, choices: Sequence[str]) -> bool:
    return isinstance(value, str) and (not choices or value in choices)
