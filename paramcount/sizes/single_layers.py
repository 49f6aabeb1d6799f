"""per_layer_config: sizes of individual layers that override the sizes of all layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, describe_value, make_printable
from paramcount.sizes import ConfigJson, FieldValues

PER_LAYER = "per_layer_config"


class Own(NamedTuple):
    """The overrides of one layer."""

    where: str  # its path, with the layer's index as in the config.json, for example "05"
    sizes: Mapping[str, Any]


NOTHING = Own("", {})


def make_per_layer_error(where: str = PER_LAYER) -> ParamcountError:
    """The error for overrides of single layers that the architecture does not support."""
    return ParamcountError("overrides sizes of individual layers, which is not supported", where=where)


def of_single_layers(js: ConfigJson, n_layers: int) -> dict[int, Own]:
    """{layer: its overrides}; empty if the key is missing, null or an empty mapping.

    Raises: ParamcountError if it is not a mapping of layers to mappings.
    """
    layers = js.get(PER_LAYER)
    if layers is not None and not isinstance(layers, Mapping):
        raise ParamcountError(f"= {describe_value(layers)}", where=PER_LAYER, expected="a JSON object of layers")
    overrides = {}
    for layer, sizes in (layers or {}).items():
        index = str(layer)
        if not (index.isascii() and index.isdecimal() and len(index) < 10 and int(index) < n_layers):
            raise ParamcountError(
                f"has layer {make_printable(index, 20)}",
                where=PER_LAYER,
                expected=f"layers from 0 to {n_layers - 1}",
            )
        if not isinstance(sizes, Mapping):
            raise ParamcountError(f"= {describe_value(sizes)}", where=f"{PER_LAYER}.{index}", expected="a JSON object")
        overrides[int(index)] = Own(f"{PER_LAYER}.{index}", sizes)
    return overrides


def read_sizes_by_kind(
    js: ConfigJson,
    values: FieldValues,
    layered: Mapping[str, Mapping[str, str]],
    common: Mapping[str, str],
) -> dict[str, tuple[Any, str]]:
    """{field: (value, its path)} of the sizes of each kind of layer. The path is "" for a size without an override.

    Args:
        layered: As in `Sizes`.
        common: {key: field of all layers}.

    Raises: ParamcountError if layers of one kind differ, or if an override is not supported.
    """
    if not layered:
        if js.get(PER_LAYER) not in (None, {}):
            raise make_per_layer_error()
        return {}
    overrides = of_single_layers(js, values["n_layers"])
    sizes: dict[str, tuple[Any, str]] = {}
    for i, word in enumerate(values["layer_types"]):
        layer, fields = overrides.get(i, NOTHING), layered.get(word, {})
        if unknown := [key for key in layer.sizes if key not in fields]:
            raise make_per_layer_error(f"{layer.where}.{make_printable(unknown[0], 40)}")
        for key, field in fields.items():
            if not field:
                continue
            value, path = values[common[key]], ""
            if key in layer.sizes:
                value, path = layer.sizes[key], f"{layer.where}.{key}"
            if sizes.setdefault(field, (value, path))[0] != value:
                raise make_per_layer_error(path or PER_LAYER)
    for fields in layered.values():
        for key, field in fields.items():
            if field:
                sizes.setdefault(field, (values[common[key]], ""))  # kinds without a layer
    return sizes
