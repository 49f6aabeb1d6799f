"""Sizes that the reference derives from others, as trees over the sizes that have keys."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from paramcount.counting.sum_weights import replace_sizes
from paramcount.errors import ParamcountError
from paramcount.explore.conditions import NoConditionsError, Run, Symbol, Tree, follow_all, get_tree
from paramcount.explore.config_keys import Block, Place, copy_plain, find_object, set_key
from paramcount.explore.derived_keys import derive, list_derived, list_values
from paramcount.huggingface.fields import ConfigField
from paramcount.sizes import Sizes
from paramcount.zoo.what_if import get_size


def derive_trees(
    sizes: Sizes, document: dict[str, Any], keys: Mapping[str, Place], blocks: Sequence[Block], free: Container[str]
) -> dict[str, Tree]:
    """{size: tree with {"value"}, or None where there is no such number} of the sizes that are `free`.

    Left out are those whose derivation is no such tree, or reads a flag or a word that has a key.
    """
    found = {}
    integers = {path: place for path, place in keys.items() if path in free}
    others = [path for path in keys if type(get_size(sizes, path)) is not int]
    structure = {name for path in others for name in (path, keys[path][-1])}
    for block in blocks:
        for field in list_derived(block.sizes):

            def follow(run: Run, block: Block = block, field: ConfigField = field) -> Tree:
                symbols = {path: Symbol(run, path, get_size(sizes, path)) for path in integers}
                stated = copy_plain(document)
                for path, place in integers.items():
                    set_key(stated, place, symbols[path])
                return follow_derivation(run, sizes, stated, block, field, structure, free)

            if block.path + field.name in free:
                try:
                    found[block.path + field.name] = follow_all(follow)
                except NoConditionsError:
                    continue
    return found


def follow_derivation(
    run: Run,
    sizes: Sizes,
    document: dict[str, Any],
    block: Block,
    field: ConfigField,
    structure: set[str],
    free: Container[str],
) -> Tree:
    """The value of a derived size on one way through its derivation."""
    symbolic = replace_sizes(sizes, lambda path, value: Symbol(run, path, value) if path in free else value)
    values = list_values(type(block.sizes), get_size(symbolic, block.path[:-1]) if block.path else symbolic)
    config = find_object(document, block.root if field.at_root else block.section)
    value, used, others = derive(field, config, values)
    if value is None or isinstance(value, ParamcountError):
        return None
    is_structure = any(name in structure for name in used) or any(block.path + name in structure for name in others)
    if run.used or is_structure or not isinstance(value, int) or type(value) is bool:
        raise NoConditionsError(frozenset(run.used))
    return {"value": get_tree(value)}
