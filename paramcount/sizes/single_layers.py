"""per_layer_config: sizes of single layers that override the sizes of all layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, describe_value, make_printable

PER_LAYER = "per_layer_config"


class Own(NamedTuple):
    """The overrides of one layer."""

    where: str  # with the layer's number as it is written: "05" among eleven and more
    sizes: Mapping[str, Any]


NOTHING = Own("", {})


def not_declared(where: str = PER_LAYER) -> ParamcountError:
    """Sizes of single layers that no declaration has a place for."""
    return ParamcountError("overrides sizes layer by layer, which is not supported", where=where)


def of_single_layers(js: Mapping[str, Any], n_layers: int) -> dict[int, Own]:
    """{layer: its overrides}; empty without the key, with null and with an empty mapping.

    Raises: ParamcountError if it is not a mapping of layers to mappings.
    """
    given = js.get(PER_LAYER)
    if given is not None and not isinstance(given, Mapping):
        raise ParamcountError(f"= {describe_value(given)}", where=PER_LAYER, expected="a mapping of layers")
    found = {}
    for layer, sizes in (given or {}).items():
        written = str(layer)
        if not (written.isascii() and written.isdecimal() and len(written) < 10 and int(written) < n_layers):
            raise ParamcountError(
                f"names layer {make_printable(written, 20)}",
                where=PER_LAYER,
                expected=f"layers from 0 to {n_layers - 1}",
            )
        if not isinstance(sizes, Mapping):
            raise ParamcountError(f"= {describe_value(sizes)}", where=f"{PER_LAYER}.{written}", expected="a mapping")
        found[int(written)] = Own(f"{PER_LAYER}.{written}", sizes)
    return found


def by_kind(
    js: Mapping[str, Any],
    values: Mapping[str, Any],
    layered: Mapping[str, Mapping[str, str]],
    common: Mapping[str, str],
) -> dict[str, tuple[Any, str]]:
    """{field: (value, where it stands)} of the sizes of layers of a kind: what they have of their own, else what all have, which stands
    nowhere here. `layered` as Sizes has it; `common`: {key: field of all layers}.

    Raises: ParamcountError where layers of a kind differ, or in a size that no declaration has a place for.
    """
    if not layered:
        if js.get(PER_LAYER) not in (None, {}):
            raise not_declared()
        return {}
    own = of_single_layers(js, values["n_layers"])
    found: dict[str, tuple[Any, str]] = {}
    for i, word in enumerate(values["layer_types"]):
        one, fields = own.get(i, NOTHING), layered.get(word, {})
        if unknown := [key for key in one.sizes if key not in fields]:
            raise not_declared(f"{one.where}.{make_printable(unknown[0], 40)}")
        for key, field in fields.items():
            if field:
                value, place = (one.sizes[key], f"{one.where}.{key}") if key in one.sizes else (values[common[key]], "")
                if found.setdefault(field, (value, place))[0] != value:
                    raise not_declared(place or PER_LAYER)
    for key, field in ((key, field) for fields in layered.values() for key, field in fields.items() if field):
        found.setdefault(field, (values[common[key]], ""))  # of a kind that no layer is of
    return found
