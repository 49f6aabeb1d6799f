"""Kinds of layers in a config.json: derivations of per-layer fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paramcount.errors import ParamcountError, describe_value, make_choice_error
from paramcount.sizes import SLIDING, Derivation, per_layer

MLP_TYPES = ("dense", "sparse")


def check_no_types(js: Mapping[str, Any], key: str, absent: int) -> int:
    """A non-negative integer key that has no field."""
    value = js.get(key, absent)
    if type(value) is not int or value < 0:
        raise ParamcountError(f"= {describe_value(value)}", where=key, expected="a non-negative integer")
    return value


def first_dense(absent: int, key: str = "first_k_dense_replace") -> Derivation:
    """The first layers; `key` has their number."""
    return lambda js, c: tuple(per_layer(c)[: check_no_types(js, key, absent)])


def every_sparse(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, ...]:
    """All but each moe_layer_freq-th layer from first_k_dense_replace on."""
    first, step = check_no_types(js, "first_k_dense_replace", 1), check_no_types(js, "moe_layer_freq", 1)
    return tuple(i for i in per_layer(c) if i < first or i % step)


def dense_by_type(otherwise: Derivation, *, checked: bool = True) -> Derivation:
    """The layers without experts, from mlp_layer_types; `otherwise` if it is missing or null.

    `checked`: the reference requires one known string per layer. It does whenever layer_types is set; otherwise it accepts
    more strings than layers, and reads any string but "sparse" as a dense layer.
    """

    def found(js: Mapping[str, Any], c: Mapping[str, Any]) -> Sequence[int]:
        words = js.get("mlp_layer_types")
        if words is None:
            dense: Sequence[int] = otherwise(js, c)
            return dense
        strict = checked or js.get("layer_types") is not None
        if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
            raise ParamcountError(f"= {describe_value(words)}", where="mlp_layer_types", expected="one entry per layer")
        if len(words) < c["n_layers"] or (strict and len(words) > c["n_layers"]):
            raise ParamcountError(
                f"names {len(words)} layers of {c['n_layers']}", where="mlp_layer_types", expected="one entry per layer"
            )
        for i, word in enumerate(words):
            if strict and word not in MLP_TYPES:
                raise make_choice_error(word, MLP_TYPES, where=f"mlp_layer_types.{i}")
        return tuple(i for i in per_layer(c) if words[i] != "sparse")

    return found


def needed(key: str) -> Derivation:
    """A number of experts that the reference has no default for, or that is null: 0 if no layer has experts."""

    def found(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
        dense = c["n_dense_layers"] if "n_dense_layers" in c else len(c["dense_layers"])
        if dense < c["n_layers"]:
            raise ParamcountError("is missing", where=key, expected="an integer")
        return 0

    return found


def full_every_key(key: str, absent: int) -> Derivation:
    """layer_types with sliding attention except in the last layer of each group; `key` has the group length."""

    def found(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
        period = check_no_types(js, key, absent)
        return tuple(SLIDING[(i + 1) % period == 0] for i in per_layer(c))

    return found


def unused(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    """Accepts null only if all layers are dense, because the reference then never reads it."""
    if len(c["dense_layers"]) < c["n_layers"]:
        raise ParamcountError(
            "is null, but some layers have experts", where="the number of experts", expected="a positive integer"
        )
    return 1
