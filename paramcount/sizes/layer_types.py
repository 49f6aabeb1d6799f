"""Derivations of per-layer fields: the kinds of layers and the layers without experts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paramcount.errors import FieldName, ParamcountError, count_noun, describe_value, make_choice_error
from paramcount.sizes import SLIDING, ConfigJson, Derivation, FieldValues, Sizes, options_first, per_layer

MLP_TYPES = ("dense", "sparse")
INDEXER_LETTERS = {"F": "full", "S": "shared"}


def count_layers(sizes: Sizes) -> int:
    """The layers of the decoder or of the only stack; 0 if an inner config has them.

    An architecture may name only the kind of each layer; then they are as many as it names (Reformer).
    """
    for name in ("n_decoder_layers", "n_layers"):
        if type(n := getattr(sizes, name, None)) is int:
            return n
    return len(getattr(sizes, "layer_types", ()))


def count_dense(c: FieldValues) -> int:
    """The number of layers without experts, if a config can have both kinds of layers."""
    n: int = c["n_dense_layers"] if "n_dense_layers" in c else len(c.get("dense_layers", ()))
    return n


def check_no_types(js: ConfigJson, key: str, absent: int) -> int:
    """A non-negative integer key that has no field."""
    value = js.get(key, absent)
    if type(value) is not int or value < 0:
        raise ParamcountError(f"= {describe_value(value)}", where=key, expected="a non-negative integer")
    return value


def first_dense(absent: int, key: str = "first_k_dense_replace") -> Derivation:
    """The layers without experts: the first ones; `key` has their number."""
    return lambda js, c: tuple(per_layer(c)[: check_no_types(js, key, absent)])


def every_sparse(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """The layers without experts: all but every moe_layer_freq-th layer from first_k_dense_replace on."""
    first, step = check_no_types(js, "first_k_dense_replace", 1), check_no_types(js, "moe_layer_freq", 1)
    return tuple(i for i in per_layer(c) if i < first or i % step)


@options_first
def dense_by_type(
    js: ConfigJson, c: FieldValues, otherwise: Derivation, *, checked: bool = True, read: Derivation | None = None
) -> Sequence[int]:
    """The layers without experts, from mlp_layer_types; `otherwise` if it is missing or null.

    `checked`: whether the reference requires one known string per layer even if layer_types is not set. If it does not,
    it accepts more strings than layers, and takes any string but "sparse" for a dense layer. `read`: the strings, if
    the reference drops some of the list.
    """
    words = js.get("mlp_layer_types") if read is None else read(js, c)
    if words is None:
        n: int = c["n_layers"]
        return tuple(i for i in otherwise(js, c) if i < n)
    strict = checked or js.get("layer_types") is not None
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise ParamcountError(f"= {describe_value(words)}", where="mlp_layer_types", expected="one entry per layer")
    if len(words) < c["n_layers"] or (strict and len(words) > c["n_layers"]):
        raise ParamcountError(
            f"has {count_noun(len(words), 'entry')} for {count_noun(c['n_layers'], 'layer')}",
            where="mlp_layer_types",
            expected="one entry per layer",
        )
    for i, word in enumerate(words):
        if strict and word not in MLP_TYPES:
            raise make_choice_error(word, MLP_TYPES, where=f"mlp_layer_types.{i}")
    return tuple(i for i in per_layer(c) if words[i] != "sparse")


@options_first
def needed(js: ConfigJson, c: FieldValues, key: str) -> int:
    """0 for a number of experts without a default, or for null, if no layer has experts."""
    if count_dense(c) < c["n_layers"]:
        raise ParamcountError("is missing", where=key, expected="an integer")
    return 0


@options_first
def full_every_key(js: ConfigJson, c: FieldValues, key: str, absent: int) -> tuple[str, ...]:
    """layer_types with full attention in the last layer of each group and sliding attention in the others.

    `key` has the number of layers in a group, `absent` is its default.
    """
    period = check_no_types(js, key, absent)
    return tuple(SLIDING[(i + 1) % period == 0] for i in per_layer(c))


def unused(js: ConfigJson, c: FieldValues) -> int:
    """1 for null, which the reference only reads if a layer has experts.

    Raises: ParamcountError if a layer has experts.
    """
    if len(c["dense_layers"]) < c["n_layers"]:
        raise ParamcountError(
            "is null, but some layers have experts", where="the number of experts", expected="a positive integer"
        )
    return 1


@options_first
def used_window(config: Mapping[str, Any], c: Any, absent: int) -> int | None:
    """The setting of Qwen 2 and 3: the window of the layers with sliding attention; None if no layer may have one.

    `absent`: the reference's default of sliding_window, which counts only if use_sliding_window is true.
    """
    window: int | None = config.get("sliding_window", absent)
    if not config.get("use_sliding_window", False) or window is None:
        return None
    if window < 1:
        raise ParamcountError(f"= {window}", where="sliding_window", expected="a positive integer")
    return window


@options_first
def sliding_types(
    config: Mapping[str, Any], c: Any, absent: int = 28, *, slides: Callable[[int, int], bool] = operator.ge
) -> tuple[str, ...] | None:
    """The setting of Qwen 2 and 3: the attention of each layer; None if no layer has a window.

    Args:
        absent: The default of max_window_layers.
        slides: Whether layer i has a window if there is no layer_types, from i and max_window_layers: in Qwen 2 and 3
            from that layer on. Source: configuration_qwen2.py of the reference.
    """
    if not config.get("use_sliding_window", False) or config.get("sliding_window", 1) is None:
        return None
    words = config.get("layer_types")
    if words is None:
        limit = config.get("max_window_layers", absent)
        words = [SLIDING[not slides(i, limit)] for i in range(c.n_layers)]
    return tuple(words) if SLIDING[0] in words else None


@options_first
def sharing_layers(js: ConfigJson, c: FieldValues, absent: int) -> tuple[int, ...]:
    """The last layers, as many as num_kv_shared_layers says, worked out as the reference does."""
    n = js.get("num_kv_shared_layers", absent)
    if type(n) is not int:
        raise ParamcountError(f"= {describe_value(n)}", where="num_kv_shared_layers", expected="an integer")
    if n == 0:
        return ()
    first, words = c["n_layers"] - n, c["layer_types"]
    before = words[:first][::-1]
    if set(before) != set(words):
        raise ParamcountError(
            f"= {n}",
            where="num_kv_shared_layers",
            expected="a smaller number, which leaves an earlier layer of each type",
        )
    shared = [i >= first for i in per_layer(c)]
    for word in set(words):
        shared[first - 1 - before.index(word)] = False  # the layer that the last ones take keys and values from
    return tuple(i for i in per_layer(c) if shared[i])


def check_kv_sources(c: Any) -> None:
    """A layer without keys and values of its own needs an earlier one of its type that has them."""
    shared, seen = set(c.kv_sharing_layers), set()
    for i, word in enumerate(c.layer_types):
        if i in shared and word not in seen:
            raise ParamcountError(
                f"= {i} has no earlier layer of its type to share with",
                where=FieldName("kv_sharing_layers"),
                expected="layers that follow one of the same type",
            )
        if i not in shared:
            seen.add(word)


def read_indexer_types(js: ConfigJson, c: FieldValues, n: int) -> Sequence[str]:
    """Whether the indexer of each of at least `n` layers is its own, "full", or that of an earlier layer, "shared".

    config.json says it in words, in a pattern of letters or words, or as regular distances.
    """
    key = "index_topk_pattern" if js.get("indexer_types") is None else "indexer_types"
    words = js.get(key)
    if words is None:
        step = max(check_no_types(js, "index_topk_freq", 1), 1)
        skipped = check_no_types(js, "index_skip_topk_offset", 2)
        return ["shared" if max(i - skipped + 1, 0) % step else "full" for i in per_layer(c)]
    if key == "index_topk_pattern" and isinstance(words, str):
        for i, letter in enumerate(words):
            if letter not in INDEXER_LETTERS:
                raise make_choice_error(letter, list(INDEXER_LETTERS), where=f"{key}.{i}")
        words = [INDEXER_LETTERS[letter] for letter in words]
    return check_indexer_types(words, key, n)


def check_indexer_types(words: Any, key: str, n: int) -> Sequence[str]:
    """The words of a key. Raises: ParamcountError if they are not a string for each of `n` layers."""
    if isinstance(words, (list, tuple)) and len(words) >= n and all(isinstance(word, str) for word in words):
        return words
    raise ParamcountError(
        f"= {describe_value(words)}", where=key, expected=f'"full" or "shared" for each of {count_noun(n, "layer")}'
    )
