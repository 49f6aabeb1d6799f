"""A model with some of its sizes changed, and the change of its parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from paramcount.errors import (
    LONGEST,
    FieldName,
    ParamcountError,
    describe_value,
    list_names,
    make_printable,
    quote,
)
from paramcount.sizes import SET, USUAL, Origin, Sizes, get_key, inner_configs
from paramcount.sizes.key_names import make_key_names
from paramcount.sizes.reading import with_document
from paramcount.sizes.rules import validate_sizes
from paramcount.sizes.values import flatten, format_input, format_size, to_json
from paramcount.zoo.aliases import find_by_heading, find_nearest_fields, find_spoken
from paramcount.zoo.model import Model, count_model

MOST_TRIED = 64  # candidate values of a size in the search for a suggestion

CONTEXT_SIZE = "n_positions"  # the size that is the context length: if it changes, the published one no longer holds


def change_sizes(model: Model, changes: Mapping[str, object]) -> Model:
    """The model with other sizes; `paramcount.what_if` documents which facts it keeps."""
    sizes = model.sizes
    values: dict[str, object] = {}  # by path
    names: dict[str, str] = {}  # {path: the name that the caller used}
    if not any(flatten(changes)):
        return model
    try:
        for name, value in flatten(changes):
            path = resolve_path(sizes, name)
            if path in values:
                found = f"is given twice, as {quote(names[path])} and as {quote(name)}"
                raise ParamcountError(found, where=path, expected="each size once")
            values[path], names[path] = value, name
        config = apply_changes(sizes, values)
    except ParamcountError as error:
        find_name = make_size_names(model, names)
        raise add_hint(error, sizes, values, find_name).rename(find_name).add_location(model.id) from None
    reading, original = model.reading, model.original or model
    config = with_document(config, original.stated)
    if reading.origin:  # a zoo entry has no origins
        origin = {path: SET if path in values else old for path, old in reading.origin.items()}
        reading = reading._replace(origin=origin, notes=(*reading.notes, *note_fixed_sizes(sizes, config, origin)))
    paths = dict.fromkeys((*model.changes, *values))
    return Model(
        id=model.id,
        name=model.name,
        config=config,
        architecture=model.architecture,
        reading=reading,
        context_length=None if CONTEXT_SIZE in values else model.context_length,
        original=original,
        changes={path: (get_size(original.sizes, path), get_size(config, path)) for path in paths},
    )


def make_size_names(model: Model, names: Mapping[str, str]) -> Callable[[str], FieldName]:
    """The name of each size in an error: the caller's word, the key of a config.json, otherwise the path itself."""
    reading, values = model.reading, model.sizes.__dict__
    find_key = make_key_names(type(model.sizes), reading.document, values, reading.origin)

    def find_name(path: str) -> FieldName:
        if path in names:
            return FieldName(make_printable(names[path], 60))
        key = find_key(path) if reading.origin else path
        return key if isinstance(key, FieldName) else FieldName(path)

    return find_name


def note_fixed_sizes(before: Sizes, after: Sizes, origins: Mapping[str, Origin]) -> Iterator[str]:
    """A note for each derived size that keeps its value although deriving it from the changes would give another."""
    new_sizes: dict[str, dict[str, Any]] = {}  # {inner config: its sizes if all were derived}
    for path, origin in origins.items():
        block, _, field = path.rpartition(".")
        old, new = (get_size(sizes, block) if block else sizes for sizes in (before, after))
        if origin.kind != "derived" or old is None or new is None:
            continue
        architecture: type[Sizes] = type(old)
        derive = get_key(architecture, field).absent
        derived_sizes = new_sizes.setdefault(block, dict(new.__dict__))
        try:
            old_value, new_value = derive({}, old.__dict__), derive({}, derived_sizes)
        except (ParamcountError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
            continue  # it depends on keys of the config.json
        if old_value == getattr(old, field) != new_value:
            derived_sizes[field] = new_value
            before_text, after_text = format_size(old_value), format_size(new_value)
            yield f"kept {path} = {before_text}; deriving it from the new sizes would give {after_text}"


def resolve_path(sizes: Sizes, path: str) -> str:
    """The path of the size that a path, a config.json key or a table heading refers to.

    Raises: ParamcountError if it refers to no size or to several, with the nearest names.
    """
    name, _, rest = path.partition(".")
    if rest and name in inner_configs(type(sizes)) and getattr(sizes, name) is None:
        raise ParamcountError(f"is null: there is no {quote(rest)} to set", where=name)
    paths = list_paths(sizes)
    if path in paths or path in inner_configs(type(sizes)):
        return path
    aliases = find_aliases(path, sizes)
    if len(aliases) == 1:
        return aliases[0]
    raise ParamcountError(
        f"has no size {quote(path)}",
        expected=list_names(paths, path[:LONGEST]),
        nearest=aliases or suggest_paths(path, sizes),
    )


def find_aliases(path: str, sizes: Sizes) -> list[str]:
    """The paths of the sizes in one block that a config.json key or a table heading refers to."""
    block, _, last = path.rpartition(".")
    paths = {other.rpartition(".")[2]: other for other in list_paths(sizes) if other.rpartition(".")[0] == block}
    if by_key := [other for other in paths.values() if last in list_config_keys(sizes, other)]:
        return by_key
    if by_heading := [paths[field] for field in find_by_heading(last, paths)]:
        return by_heading
    if by_usual_key := [other for field, other in paths.items() if USUAL.get(field) == last]:
        return by_usual_key
    return [paths[field] for field in find_spoken(last, paths)]


def apply_changes(sizes: Sizes, changes: Mapping[str, object]) -> Sizes:
    """The sizes with other values. `changes`: {path: value}.

    Raises: ParamcountError as `validate_sizes` does.
    """
    values: dict[str, Any] = dict(sizes.__dict__)
    inner_changes: dict[str, dict[str, object]] = {}
    for path, value in changes.items():
        name, _, rest = path.partition(".")
        if rest:
            inner_changes.setdefault(name, {})[rest] = value
        elif name in inner_configs(type(sizes)) and value is not None and not isinstance(value, Sizes):
            example = next(iter(list_paths(sizes, name)), "none")
            found = f"= {describe_value(value)}"
            raise ParamcountError(found, where=name, expected=f"its sizes one at a time, such as {example}")
        else:
            values[name] = value
    for name, settings in inner_changes.items():
        if values[name] is None:
            raise ParamcountError("is set to null, but also has sizes", where=name, expected="one of the two")
        try:
            values[name] = apply_changes(values[name], settings)
        except ParamcountError as error:
            raise error.add_block(name) from None
    return validate_sizes(type(sizes), values)


def list_paths(sizes: Sizes, block: str = "") -> list[str]:
    """The paths of all sizes, or of the sizes in one inner config."""
    paths = []
    for name, value in sizes.__dict__.items():
        if isinstance(value, Sizes):
            paths += [f"{name}.{path}" for path in list_paths(value)] if block in ("", name) else []
        elif not block and name not in inner_configs(type(sizes)):
            paths.append(name)
    return paths


def suggest_paths(path: str, sizes: Sizes) -> Sequence[str]:
    """The sizes that an unknown path may refer to: those with this config.json key or name, else the nearest names."""
    last, paths = path.rpartition(".")[2], list_paths(sizes)
    matches = [other for other in paths if last in (other.rpartition(".")[2], *list_config_keys(sizes, other))]
    return matches or find_nearest_fields(path[:LONGEST], paths)


def list_config_keys(sizes: Sizes, path: str) -> list[str]:
    """The config.json keys of a size, without the sections around them."""
    name, _, rest = path.partition(".")
    if rest:
        return list_config_keys(getattr(sizes, name), rest)
    return [re.split(r"[./]", key)[-1] for key in get_key(type(sizes), name).spellings(name)]


def get_size(sizes: Sizes, path: str) -> Any:
    """The value of a path; None if an inner config on the way is None."""
    value: Any = sizes
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


# ---- suggestions


def add_hint(
    error: ParamcountError, sizes: Sizes, changes: Mapping[str, object], find_name: Callable[[str], FieldName]
) -> ParamcountError:
    """The same error with a suggestion: a further change that makes the others valid, or the nearest valid value."""
    paths = list_paths(sizes)
    others = [path for path in error.list_paths() if path in paths and path not in changes]
    for path in others:
        if example := find_example(error, sizes, changes, path):
            settings = [f"{find_name(name)}={format_input(value)}" for name, value in list(changes.items())[:3]]
            settings.append(f"{find_name(path)}={example}")
            return error.replace(expected=f"{error.expected}, for example {' and '.join(settings)}")
    hint = ""
    for path, value in changes.items() if others else ():
        nearby = [value + sign * i for i in range(1, MOST_TRIED) for sign in (-1, 1)] if type(value) is int else []
        example = find_valid_value(sizes, changes, path, nearby)
        if example and (path, example) != (error.where, error.expected):
            hint = f", or {find_name(path)}={example}"
    return error.replace(expected=error.expected + hint)


def find_example(error: ParamcountError, sizes: Sizes, changes: Mapping[str, object], path: str) -> str:
    """A further change that makes the others valid, such as "96"; empty if none is found.

    Only the first words of a list with one word per layer are suggested.
    """
    value = get_size(sizes, path)
    numbers = {*error.sizes, *(choice for choice in error.choices if isinstance(choice, int))}
    candidates: list[Any] = []
    if type(value) is int:
        divisors = {n // d for n in numbers for d in range(1, 257) if n % d == 0}
        candidates = sorted(divisors | numbers, key=lambda n: (abs(n - value), n))[:MOST_TRIED]
    elif isinstance(value, tuple) and value and isinstance(value[0], str):
        return f"[{', '.join([*map(format_input, list(dict.fromkeys(value))[:2]), '…'])}]"
    elif isinstance(value, tuple):
        candidates = [tuple(i for i in value if i < n) for n in sorted(numbers, reverse=True)]
    return find_valid_value(sizes, changes, path, candidates)


def find_valid_value(sizes: Sizes, changes: Mapping[str, object], path: str, candidates: Iterable[object]) -> str:
    """The first candidate for a size that makes the changes valid; empty if none does."""
    for candidate in candidates:
        try:
            apply_changes(sizes, {**changes, path: candidate})
        except ParamcountError:
            continue
        return format_input(candidate)
    return ""


# ---- output


def describe_changes(model: Model) -> list[str]:
    """The changes of the sizes, the total, the active parameters, MTP layers and buffers.

    Empty for an unchanged model.
    """
    if model.original is None:
        return []
    before, after = count_model(model.original), count_model(model)
    lines = [f"{format_changes(model)}: total {format_sum(before.total, after.total)}"]
    if (before.active, after.active) != (before.total, after.total):
        lines.append(f"active {format_sum(before.active, after.active)}")
    others = (("MTP", before.mtp, after.mtp), ("buffers", before.buffers, after.buffers))
    known = ((name, a, b) for name, a, b in others if a is not None and b is not None)
    return lines + [f"{name} {format_sum(a, b)}" for name, a, b in known if a != b]


def format_changes(model: Model) -> str:
    """The changes on one line: "changed n_layers 32 → 40"."""
    changes = (
        f"{path} {format_size(before)} → {format_size(after)}" for path, (before, after) in model.changes.items()
    )
    return f"changed {', '.join(changes)}"


def format_sum(before: int, after: int) -> str:
    """A change of a number as a sum.

    >>> format_sum(8_030_261_248, 8_030_261_247)
    '8,030,261,248 − 1 = 8,030,261,247'
    """
    return f"{before:,} {'−' if after < before else '+'} {abs(after - before):,} = {after:,}"


def changes_to_dict(model: Model) -> dict[str, Any]:
    """The changes for JSON: `set`, {size: [before, after]}, and the original counts; empty for an unchanged model."""
    if model.original is None:
        return {}
    count = count_model(model.original)
    changes = {path: [to_json(value) for value in values] for path, values in model.changes.items()}
    return {"set": changes, "original_total": count.total, "original_active": count.active}
