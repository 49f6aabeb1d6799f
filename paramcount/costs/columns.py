"""Columns about resources, for comparisons: weights in a format, KV cache and FLOPs per token."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from paramcount.costs.caches import count_growth, count_states, list_cache_groups
from paramcount.costs.dtypes import find_weight_format, parse_kv_dtype
from paramcount.costs.flops import measure_flops
from paramcount.costs.memory import DEFAULT_CONTEXT
from paramcount.costs.render_flops import format_flops
from paramcount.costs.weights import group_weights, store_weights
from paramcount.output.numbers import format_bytes
from paramcount.zoo import Model, count_model


class Resource(NamedTuple):
    """A column: its heading, how to format a value, and its value for a model."""

    label: str
    show: Callable[[int], str]
    compute: Callable[[Model], int]


BF16 = parse_kv_dtype("bf16")
RESOURCES = {
    "kv_per_token": Resource(
        "KV cache/token", format_bytes, lambda model: count_growth(list_cache_groups(model), BF16)
    ),
    "state": Resource("state", format_bytes, lambda model: count_states(list_cache_groups(model), BF16)),
    "flops_per_token": Resource(
        f"FLOPs/token at {DEFAULT_CONTEXT:,}", format_flops, lambda model: measure_flops(model).flops_per_token
    ),
}


def find_resource(name: str) -> Resource | None:
    """The column with this name, or the bytes of the weights in a format with this name; None if there is neither."""
    name = name.strip().lower()
    if name in RESOURCES:
        return RESOURCES[name]
    format = find_weight_format(name)
    if format is None:
        return None

    def count_weight_bytes(model: Model) -> int:
        return sum(group.bytes for group in group_weights(store_weights(count_model(model), format)))

    return Resource(format.label, format_bytes, count_weight_bytes)


def find_resources(names: Iterable[str]) -> dict[str, Resource]:
    """{name in lower case: column} of the names that are resources."""
    found = ((name.strip().lower(), find_resource(name)) for name in names)
    return {name: resource for name, resource in found if resource}
