"""A model with some of its sizes changed, and what that adds to its parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from paramcount.errors import LONGEST, ParamcountError, describe_value, find_nearest, list_names, quote
from paramcount.sizes import SET, USUAL, Origin, Sizes, get_key, inner_configs
from paramcount.sizes.rules import validate_sizes
from paramcount.sizes.values import format_input, format_size, to_json
from paramcount.zoo.aliases import find_by_heading
from paramcount.zoo.model import Model, count_model

MOST_TRIED = 64  # candidate values of a size in the search for a suggestion


def change_sizes(model: Model, changes: Mapping[str, object]) -> Model:
    """The model with other sizes; `paramcount.what_if` says what it keeps."""
    sizes, wanted, names = model.sizes, dict[str, object](), dict[str, str]()
    if not any(flatten_changes(changes)):
        return model
    try:
        for name, value in flatten_changes(changes):
            path = resolve_path(sizes, name)
            if path in wanted:
                raise ParamcountError(
                    f"is given twice, as {names[path]} and as {quote(name)}", where=path, expected="each size once"
                )
            wanted[path], names[path] = value, quote(name)
        config = apply_changes(sizes, wanted)
    except ParamcountError as error:
        raise add_hint(error, sizes, wanted).add_location(model.id) from None
    reading, original = model.reading, model.original or model
    if reading.origin:  # a zoo entry has no origins
        origin = {name: SET if name in wanted else found for name, found in reading.origin.items()}
        reading = reading._replace(origin=origin, notes=(*reading.notes, *note_fixed_sizes(sizes, config, origin)))
    paths = dict.fromkeys((*model.changes, *wanted))
    return Model(
        id=model.id,
        name=model.name,
        config=config,
        architecture=model.architecture,
        reading=reading,
        context_length=None if "n_positions" in wanted else model.context_length,
        original=original,
        changes={path: (get_size(original.sizes, path), get_size(config, path)) for path in paths},
    )


def note_fixed_sizes(before: Sizes, after: Sizes, origins: Mapping[str, Origin]) -> Iterator[str]:
    """A note for each size that the config.json derives and that would have another value if derived from the changes."""
    derived: dict[str, dict[str, Any]] = {}  # of each inner config, its sizes as they would be
    for path, origin in origins.items():
        block, _, field = path.rpartition(".")
        old, new = (get_size(sizes, block) if block else sizes for sizes in (before, after))
        if origin.kind == "derived" and old is not None and new is not None:
            derivation, would_be = get_key(type(old), field).absent, derived.setdefault(block, dict(new.__dict__))
            try:
                then, now = derivation({}, old.__dict__), derivation({}, would_be)
            except (ParamcountError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
                continue  # it depends on keys of the config.json
            if then == getattr(old, field) != now:
                would_be[field] = now
                yield f"kept {path} = {format_size(then)}; deriving it from the new sizes would give {format_size(now)}"


def flatten_changes(changes: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """(path of a size, its value) for every change, nested mappings flattened."""
    for name, value in changes.items():
        if isinstance(value, Mapping) and value:
            yield from flatten_changes(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


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
    found = find_aliases(path, sizes)
    if len(found) == 1:
        return found[0]
    raise ParamcountError(
        f"has no size {quote(path)}",
        expected=list_names(paths, path[:LONGEST]),
        nearest=found or suggest_paths(path, sizes),
    )


def find_aliases(path: str, sizes: Sizes) -> list[str]:
    """The paths of the sizes in one block that a config.json key or a table heading refers to."""
    block, _, last = path.rpartition(".")
    within = {name.rpartition(".")[2]: name for name in list_paths(sizes) if name.rpartition(".")[0] == block}
    found = [name for name in within.values() if last in list_config_keys(sizes, name)]
    return (
        found
        or [within[field] for field in find_by_heading(last, within)]
        or [name for field, name in within.items() if USUAL.get(field) == last]
    )


def apply_changes(sizes: Sizes, wanted: Mapping[str, object]) -> Sizes:
    """The sizes with other values under these paths.

    Raises: ParamcountError as `validate_sizes` does.
    """
    values: dict[str, Any] = dict(sizes.__dict__)
    below: dict[str, dict[str, object]] = {}
    for path, value in wanted.items():
        name, _, rest = path.partition(".")
        if rest:
            below.setdefault(name, {})[rest] = value
        elif name in inner_configs(type(sizes)) and value is not None and not isinstance(value, Sizes):
            raise ParamcountError(
                f"= {describe_value(value)}",
                where=name,
                expected=f"its sizes one at a time, such as {next(iter(list_paths(sizes, name)), 'none')}",
            )
        else:
            values[name] = value
    for name, settings in below.items():
        if values[name] is None:
            raise ParamcountError("is set to null and given sizes", where=name, expected="one of the two")
        try:
            values[name] = apply_changes(values[name], settings)
        except ParamcountError as error:
            raise error.add_block(name) from None
    return validate_sizes(type(sizes), values)


def list_paths(sizes: Sizes, within: str = "") -> list[str]:
    """The paths of all sizes, or of the sizes in one inner config."""
    found = []
    for name, value in sizes.__dict__.items():
        if isinstance(value, Sizes):
            found += [f"{name}.{path}" for path in list_paths(value)] if within in ("", name) else []
        elif not within and name not in inner_configs(type(sizes)):
            found.append(name)
    return found


def suggest_paths(path: str, sizes: Sizes) -> Sequence[str]:
    """The sizes that an unknown path may refer to: those with that config.json key or last name, else the nearest names."""
    last = path.rpartition(".")[2]
    return [
        name for name in list_paths(sizes) if last in (name.rpartition(".")[2], *list_config_keys(sizes, name))
    ] or find_nearest(path[:LONGEST], list_paths(sizes))


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


def add_hint(error: ParamcountError, sizes: Sizes, wanted: Mapping[str, object]) -> ParamcountError:
    """The same error with a suggestion: a second change that makes the first ones valid, or the nearest valid value."""
    others = [path for path in find_paths(error.where, list_paths(sizes)) if path not in wanted]
    hint = ""
    for path in others:
        if example := find_example(error, sizes, wanted, path):
            hint = f", as with {' and '.join([*(f'{name}={format_input(value)}' for name, value in list(wanted.items())[:3]), example])}"
            break
    else:
        for path, value in wanted.items() if others else ():
            beside = [value + sign * i for i in range(1, MOST_TRIED) for sign in (-1, 1)] if type(value) is int else []
            if example := find_valid_value(sizes, wanted, path, beside):
                hint = f", or {example}"
    return error.replace(expected=error.expected + hint)


def find_paths(where: str, known: Sequence[str]) -> list[str]:
    """The paths that an error location names: both for vision.n_heads × d_head, the list for layer_types.3."""
    words = [re.sub(r"(\.\d+)+$", "", word) for word in re.findall(r"[\w.]+", where)]
    block = words[0].rpartition(".")[0] if words else ""
    return [path for word in words for path in (word, f"{block}.{word}") if path in known]


def find_example(error: ParamcountError, sizes: Sizes, wanted: Mapping[str, object], path: str) -> str:
    """A further change that makes the wanted ones valid, such as "d_head=96"; empty if none is found.

    Only the first words of a list with one word per layer are suggested.
    """
    value = get_size(sizes, path)
    numbers = {int(n) for n in re.findall(r"\d{1,12}", f"{error.found} {error.expected}")}
    candidates: list[Any] = []
    if type(value) is int:
        divisors = {n // d for n in numbers for d in range(1, 257) if n % d == 0}
        candidates = sorted(divisors | numbers, key=lambda n: (abs(n - value), n))[:MOST_TRIED]
    elif isinstance(value, tuple) and value and isinstance(value[0], str):
        return f"{path}=[{', '.join([*map(format_input, list(dict.fromkeys(value))[:2]), '…'])}]"
    elif isinstance(value, tuple):
        candidates = [tuple(i for i in value if i < n) for n in sorted(numbers, reverse=True)]
    return find_valid_value(sizes, wanted, path, candidates)


def find_valid_value(sizes: Sizes, wanted: Mapping[str, object], path: str, candidates: Iterable[object]) -> str:
    """The first candidate for a size that makes the wanted changes valid; empty if none does."""
    for candidate in candidates:
        try:
            apply_changes(sizes, {**wanted, path: candidate})
        except ParamcountError:
            continue
        return f"{path}={format_input(candidate)}"
    return ""


# ---- output


def describe_changes(model: Model) -> list[str]:
    """The changes and how they change the total, the active parameters, MTP layers and buffers; empty for an unchanged model."""
    if model.original is None:
        return []
    before, after = count_model(model.original), count_model(model)
    lines = [f"{format_changes(model)}: {format_sum(before.total, after.total)}"]
    if (before.active, after.active) != (before.total, after.total):
        lines.append(f"active {format_sum(before.active, after.active)}")
    beside = (("MTP", before.mtp, after.mtp), ("buffers", before.buffers, after.buffers))
    return lines + [f"{name} {format_sum(a, b)}" for name, a, b in beside if a != b]


def format_changes(model: Model) -> str:
    """The changes on one line: "what if n_layers 32 → 40"."""
    return f"what if {', '.join(f'{name} {format_size(before)} → {format_size(after)}' for name, (before, after) in model.changes.items())}"


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
    both = {name: [to_json(value) for value in values] for name, values in model.changes.items()}
    return {"set": both, "original_total": count.total, "original_active": count.active}
