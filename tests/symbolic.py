"""Sizes of an architecture with symbols or arrays in the place of numbers, as a declaration called unbound takes
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcount.sizes import Sizes
from paramcount.symbolic.polynomials import make_symbols

LISTED = (
    "cross_attention_layers",
    "dense_layers",
    "reusing_layers",
    "active_by_layer",
    "layer_types",
    "target_layers",
)  # layers named one by one: how many there are is structure
NUMBERS = ("n_layers", "n_views")  # of layers, where they are named

COUNTS = ("n_layers_before", "n_matrices", "n_merges", "n_shards")  # of steps that a declaration lists one by one


def replace_sizes(sizes: Sizes, replace: Callable[[str, int], Any], prefix: str = "", listed: bool = False) -> Sizes:
    """The same attributes with every number replaced. Flags, words, lists and None are structure and stay.

    `listed`: layers are named one by one by what these sizes are a part of.
    """
    found: dict[str, Any] = {}
    listed = listed or any(getattr(sizes, name, ()) for name in LISTED)
    for name in type(sizes).fields:
        value = getattr(sizes, name)
        if isinstance(value, Sizes):
            found[name] = replace_sizes(value, replace, f"{prefix}{name}_", listed)
        elif type(value) is int and not (listed and name in NUMBERS) and name not in COUNTS:
            found[name] = replace(prefix + name, value)
        else:
            found[name] = value
    return type(sizes).make(found)


def make_symbolic(sizes: Sizes) -> tuple[Sizes, dict[str, int]]:
    """The sizes as symbols, and what each of them stands for."""
    values: dict[str, int] = {}

    def make_symbol(name: str, value: int) -> Any:
        values[name] = value
        return make_symbols(name)[0]

    return replace_sizes(sizes, make_symbol), values
