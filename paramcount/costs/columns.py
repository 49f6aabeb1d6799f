"""Columns about resources, for tables of models: weights in a format, KV cache and FLOPs per token."""

from __future__ import annotations

from collections.abc import Callable

from paramcount.costs.caches import count_growth, count_states, list_cache_groups
from paramcount.costs.dtypes import find_weight_format, parse_kv_dtype
from paramcount.costs.flops import measure_flops
from paramcount.costs.render_flops import format_flops
from paramcount.costs.requests import DEFAULT_CONTEXT
from paramcount.costs.weights import store_weights, sum_mtp, sum_weights
from paramcount.counting import Count
from paramcount.errors import ParamcountError
from paramcount.formats.quantization_config import WeightDtype
from paramcount.zoo import Model
from paramcount.zoo.columns import TableField, format_bytes_or_dash

BF16 = parse_kv_dtype("bf16")


def unless_estimate(compute: Callable[[Model], int | None]) -> Callable[[Model, Count | None], int | None]:
    """A value of a model; None for a third-party estimate."""
    return lambda model, count: None if count is None else compute(model)


def count_weight_bytes(count: Count, format: WeightDtype) -> int:
    """Bytes of the weights in a file of a format: scales, and MTP layers that a GGUF file has, included."""
    return sum_weights(store_weights(count, format), format) + sum_mtp(count, format)


RESOURCES = (
    TableField(
        "kv_per_token", "integer", "bytes", "KV cache that each further token adds, in BF16.",
        unless_estimate(lambda model: count_growth(list_cache_groups(model), BF16)),
        "KV cache/token", format_bytes_or_dash,
    ),
    TableField(
        "state", "integer", "bytes", "Recurrent state of one sequence, in BF16.",
        unless_estimate(lambda model: count_states(list_cache_groups(model), BF16)), "state", format_bytes_or_dash,
    ),
    TableField(
        "flops_per_token", "integer", "FLOPs",
        f"Matmuls of one decoded token at a context of {DEFAULT_CONTEXT:,} or the model's longest; none if the "
        "model decodes no tokens.",
        unless_estimate(lambda model: measure_flops(model).flops_per_token),
        f"FLOPs/token at {DEFAULT_CONTEXT:,}", lambda value: "–" if value is None else format_flops(value),
    ),
)  # fmt: skip


def find_resource(name: str) -> TableField | None:
    """The column with this name, or the bytes of the weights in a format with this name; None if there is neither."""
    name = name.strip().lower()
    for field in RESOURCES:
        if field.name == name:
            return field
    format = find_weight_format(name)
    if format is None:
        return None

    def compute(model: Model, count: Count | None) -> int | None:
        try:
            return None if count is None else count_weight_bytes(count, format)
        except ParamcountError:  # llama.cpp has no names for the tensors of this architecture
            return None

    meaning = f"Weights in {format.label}, scales included; empty if the format does not store the architecture."
    return TableField(name, "integer", "bytes", meaning, compute, format.label, format_bytes_or_dash)
