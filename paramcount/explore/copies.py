"""A model as text to change: its zoo entry without what was checked or published, and a config.json."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

from paramcount.errors import ParamcountError
from paramcount.explore.conditions import PASSES, NoConditionsError, SymbolicRun, follow_all, make_symbolic
from paramcount.explore.config_keys import (
    ConfigBlock,
    Place,
    copy_plain,
    find_object,
    list_classes,
    set_key,
    state_sizes,
)
from paramcount.explore.derived_keys import derive, list_derived, list_values
from paramcount.huggingface.config import read_config
from paramcount.huggingface.fields import ConfigField
from paramcount.sizes import Sizes, build_as_reference, inner_configs
from paramcount.sizes.values import to_json
from paramcount.symbolic import trees
from paramcount.symbolic.polynomials import Polynomial, make_symbols
from paramcount.symbolic.trees import Tree, evaluate
from paramcount.version import __version__
from paramcount.zoo import Model
from paramcount.zoo.adding import build_unverified
from paramcount.zoo.entries import Source
from paramcount.zoo.what_if import get_size, list_paths
from paramcount.zoo.writing import format_entry

COPIED = datetime.date(1, 1, 1)  # the page has the day of the copy instead


def export_yaml(model: Model) -> str | None:
    """A zoo entry with the sizes of a model, unverified; None for a model that is not from the zoo."""
    if model.entry is None:
        return None
    ref = f"paramcount {__version__}, changed from {model.id}"
    source = Source(id="config", kind="publisher", ref=ref, accessed=COPIED)
    named = {"name": f"{model.name}, changed", "settings": model.entry.settings}
    return format_entry(build_unverified(model, f"{model.id}-changed", source, **named))


def export_config(model: Model, free: Collection[str]) -> dict[str, Any]:
    """A config.json that is read as these sizes: {"document", "keys", "derived", "coupled"}, or {"reason"} if the page
    has none. `free`: the sizes that the page can change. Of a release that differs from the reference: as the reference
    reads the config.json.

    `keys` has the place of each size whose change is one of a key, `coupled` the sizes whose key changes another one.
    `derived` has a tree for each size that the reference derives from others.
    """
    reason, model = "", replace(model, config=build_as_reference(model.sizes))
    for reference, context in product(list_classes(model), dict.fromkeys((model.context_length, None))):
        document, places, blocks = state_sizes(model, reference, context)
        try:
            settle(document, model.sizes)
        except ParamcountError as error:
            reason = reason or f"it needs keys that the entry does not state: {error}"
            continue
        derived = derive_trees(model.sizes, document, places, blocks, free)
        keys = {path: place for path, place in places.items() if is_changeable(get_size(model.sizes, path))}
        coupled = {path: find_coupled(model, document, path, place, derived) for path, place in keys.items()}
        return {
            "document": document,
            "keys": {path: place for path, place in keys.items() if not coupled[path]},
            "derived": {path: trees.to_json(tree) for path, tree in derived.items()},
            "coupled": {path: other for path, other in coupled.items() if other},
        }
    return {"reason": reason}


def settle(document: dict[str, Any], sizes: Sizes) -> None:
    """Add the keys that the reference requires if there are few choices.

    Raises: ParamcountError if it still refuses the config.json, or reads other sizes.
    """
    parts = (sizes, *(getattr(sizes, name) for name in inner_configs(type(sizes))))
    references = {part.reference for part in parts if isinstance(part, Sizes)}
    while error := find_refusal(document, sizes):
        tries = [(tried, find_refusal(tried, sizes)) for tried in list_choices(document, error, references)]
        others = [tried for tried, refused in tries if refused is not None and refused.where != error.where]
        better = next((tried for tried, refused in tries if refused is None), others[0] if others else None)
        if better is None:
            raise error
        document |= better


def list_choices(
    document: dict[str, Any], error: ParamcountError, likely: Container[object]
) -> Iterator[dict[str, Any]]:
    """The config.json with each of the values that an error names, the likely ones first."""
    *place, last = error.where.split(".")
    for value in sorted(error.choices, key=lambda choice: choice not in likely):
        tried = copy_plain(document)
        if last == "0":
            set_key(tried, place, [value])
        else:
            set_key(tried, [*place, last], value)
        yield tried


def find_refusal(document: dict[str, Any], sizes: Sizes) -> ParamcountError | None:
    """Why a config.json is not read as these sizes; None if it is."""
    try:
        found = read_config(document).sizes
    except ParamcountError as error:
        return error
    if found == sizes:
        return None
    return ParamcountError("has no key", where=next(list_differences(found, sizes), ""))


def list_differences(sizes: Sizes, others: Sizes) -> Iterator[str]:
    """The paths of the sizes that differ."""
    return (path for path in list_paths(others) if get_size(sizes, path) != get_size(others, path))


def is_changeable(value: Any) -> bool:
    """Whether the page can change a size: an integer, a flag, or words."""
    return type(value) in (int, bool) or (isinstance(value, tuple) and all(isinstance(kind, str) for kind in value))


def find_coupled(
    model: Model, document: dict[str, Any], path: str, place: Place, derived: Container[str]
) -> str | None:
    """A size that changes with the key of another; None if that key changes no other, but for derived integers."""
    for value in list_other_values(get_size(model.sizes, path)):
        changed = copy_plain(document)
        set_key(changed, place, to_json(value))
        with suppress(ParamcountError):
            sizes = read_config(changed).sizes
            if get_size(sizes, path) != value:
                return path
            others = list_differences(sizes, model.sizes)
            return next((n for n in others if n != path and (type(value) is not int or n not in derived)), None)
    return None


def list_other_values(value: Any) -> Iterator[Any]:
    """Other values of a size: an integer, a flag the other way, or layers of one kind only."""
    if type(value) is bool:
        yield not value
    elif type(value) is int:
        yield from (2 * value, value // 2, value + 1)
    else:
        yield from ((kind,) * len(value) for kind in dict.fromkeys(value) if len(set(value)) > 1)


def derive_trees(
    sizes: Sizes,
    document: dict[str, Any],
    keys: Mapping[str, Place],
    blocks: Sequence[ConfigBlock],
    free: Container[str],
) -> dict[str, Tree]:
    """{size: tree, of a Literal of None where there is no such number} of the sizes that are `free`.

    Left out are those whose derivation is no such tree, or reads a flag or a word that has a key.
    """
    found = {}
    symbolic, numbers = make_symbolic(sizes, free)
    stated = copy_plain(document)
    for path, place in keys.items():
        if path in free:
            set_key(stated, place, make_symbols(path)[0])
    others = [path for path in keys if type(get_size(sizes, path)) is not int]
    structure = {name for path in others for name in (path, keys[path][-1])}
    for block in blocks:
        for field in list_derived(block.sizes):

            def follow(run: SymbolicRun, block: ConfigBlock = block, field: ConfigField = field) -> Tree:
                return follow_derivation(run, symbolic, stated, block, field, structure)

            if block.path + field.name in free:
                try:
                    tree = follow_all(follow, numbers)
                except NoConditionsError:
                    continue
                if evaluate(tree, numbers) is not None:  # None: a check of its derivation takes numbers alone
                    found[block.path + field.name] = tree
    return found


def follow_derivation(
    run: SymbolicRun,
    symbolic: Sizes,
    document: dict[str, Any],
    block: ConfigBlock,
    field: ConfigField,
    structure: set[str],
) -> Tree:
    """The value of a derived size on one way through its derivation."""
    values = list_values(type(block.sizes), get_size(symbolic, block.path[:-1]) if block.path else symbolic)
    config = find_object(document, block.root if field.at_root else block.section)
    value, used, others = derive(field, config, values)
    if value is None or isinstance(value, ParamcountError):
        return PASSES
    is_structure = any(name in structure for name in used) or any(block.path + name in structure for name in others)
    if run.used or is_structure or not isinstance(value, (int, Polynomial)) or type(value) is bool:
        raise NoConditionsError(frozenset(run.used))
    return run.make_tree(value)
