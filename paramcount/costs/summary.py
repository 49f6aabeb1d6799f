"""The resources of a model in one line: weights in the usual formats, and the KV cache."""

from __future__ import annotations

from paramcount.costs.caches import CacheGroup, count_growth, count_states, count_windows, list_cache_groups
from paramcount.costs.dtypes import parse_kv_dtype, parse_weight_format
from paramcount.costs.weights import group_weights, store_weights
from paramcount.counting import Count
from paramcount.output.numbers import format_bytes
from paramcount.zoo import Model

FORMATS = ("bf16", "fp8", "int4")
BLOCKS = " (128 × 128 blocks)"  # the usual ones, which the line leaves out


def summarize_resources(model: Model, count: Count) -> str:
    """Such as "BF16 249 MB · FP8 (128 × 128 blocks) 164 MB · INT4 (group 128) 123 MB · KV cache 36.9 kB per token"."""
    parts = []
    for format in map(parse_weight_format, FORMATS):
        weights = sum(group.bytes for group in group_weights(store_weights(count, format)))
        parts.append(f"{format.label.replace(BLOCKS, '')} {format_bytes(weights)}")
    return " · ".join([*parts, *describe_caches(list_cache_groups(model))])


def describe_caches(groups: tuple[CacheGroup, ...]) -> list[str]:
    """The KV cache per token and the state, in BF16; empty if there are none."""
    dtype = parse_kv_dtype("bf16")
    growing, windows, state = (count(groups, dtype) for count in (count_growth, count_windows, count_states))
    parts = []
    if growing or windows:
        terms = [f"{format_bytes(growing)} per token"] if growing else []
        terms += [f"up to {format_bytes(windows)} in sliding windows"] if windows else []
        parts.append(f"KV cache {' + '.join(terms)} (BF16)")
    return [*parts, f"state {format_bytes(state)} (BF16)"] if state else parts
