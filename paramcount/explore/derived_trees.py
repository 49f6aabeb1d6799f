"""Sizes that the reference derives from others, as trees over the sizes that have keys."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from paramcount.counting.sum_weights import replace_sizes
from paramcount.errors import ParamcountError
from paramcount.explore.conditions import PASSES, NoConditionsError, SymbolicRun, follow_all
from paramcount.explore.config_keys import ConfigBlock, Place, copy_plain, find_object, set_key
from paramcount.explore.derived_keys import derive, list_derived, list_values
from paramcount.huggingface.fields import ConfigField
from paramcount.sizes import Sizes
from paramcount.symbolic.polynomials import Polynomial, make_symbols
from paramcount.symbolic.trees import Tree, evaluate
from paramcount.zoo.what_if import get_size


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
    numbers: dict[str, int] = {}

    def make_symbol(path: str, value: Any) -> Any:
        if path not in free:
            return value
        numbers[path] = value
        return make_symbols(path)[0]

    symbolic = replace_sizes(sizes, make_symbol)
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
