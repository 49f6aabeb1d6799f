"""Derivations: sizes that the reference computes from other config.json keys and from earlier sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import trunc
from numbers import Integral
from typing import Any

from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.sizes.fields import ConfigJson, Derivation, FieldValues, Sizes, get_key, inner_configs, options_first
from paramcount.sizes.types import MOST_NAMED

SLIDING = ("sliding_attention", "full_attention")


def equal_to(field: str) -> Derivation:
    return lambda js, c: c[field]


def floor_d_model_per_head(js: ConfigJson, c: FieldValues) -> int:
    """The head size if heads need not fill d_model."""
    found: int = c["d_model"] // c["n_heads"]
    return found


@options_first
def d_model_per(js: ConfigJson, c: FieldValues, heads: str) -> int:
    """The head size if so many heads share d_model."""
    d_model, n_heads = c["d_model"], c[heads]
    d_head: int = d_model // n_heads
    if d_head == 0:
        found = f"= {d_model} is less than " + FieldName(heads) + f" = {n_heads}"
        expected = "at least one dimension per head"
        raise ParamcountError(found, where=FieldName("d_model"), expected=expected, sizes=(d_model, n_heads))
    return d_head


d_model_per_head = d_model_per("n_heads")


def flag(js: ConfigJson, key: str, absent: bool) -> bool:
    """A boolean key that has no field."""
    value = js.get(key, absent)
    if not isinstance(value, bool):
        raise ParamcountError(f"= {describe_value(value)}", where=key, expected="true or false")
    return value


class ClassEnds:
    """Whether the first name in `architectures` has one of these endings."""

    def __init__(self, endings: tuple[str, ...]) -> None:
        self.endings = endings

    def __call__(self, js: ConfigJson, c: FieldValues) -> bool:
        first = (js.get("architectures") or [""])[0]
        return isinstance(first, str) and first.endswith(self.endings) and not first.endswith("LMHeadModel")


def class_ends(*endings: str) -> Derivation:
    """Whether the class that `architectures` names first has one of these endings."""
    return ClassEnds(endings)


def change_class(sizes: Sizes, reference: str) -> Sizes:
    """The same sizes in another class of their architecture, with the flags that depend on its name."""
    flags = {
        name: derive({"architectures": [reference]}, {})
        for name in type(sizes).fields.keys() - inner_configs(type(sizes))
        if isinstance(derive := get_key(type(sizes), name).absent, ClassEnds)
    }
    return sizes.replace(**flags)


def per_layer(c: FieldValues) -> range:
    """The layer indices.

    Raises: ParamcountError if there are too many to list.
    """
    if c["n_layers"] > MOST_NAMED:
        expected = f"at most {MOST_NAMED:,} layers if they differ"
        raise ParamcountError(f"= {c['n_layers']}", where=FieldName("n_layers"), expected=expected)
    return range(c["n_layers"])


def scattered_dense_layers(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """The layers without experts, from Qwen's keys mlp_only_layers and decoder_sparse_step."""
    dense_layers, step = js.get("mlp_only_layers") or (), js.get("decoder_sparse_step", 1)
    return tuple(i for i in per_layer(c) if i in dense_layers or (i + 1) % step)


def tied_anywhere(js: ConfigJson, c: FieldValues) -> bool:
    """Whether the LM head is tied, at_root: unless both the top level and the text's section say otherwise."""
    return flag(js, "tie_word_embeddings", True) or flag(js.get("text_config") or {}, "tie_word_embeddings", True)


def part_of(size: Any, share: object, key: str = "partial_rotary_factor") -> int:
    """A share of a size, rounded down. Numbers only, because list * n could fill the memory. `key`: of the share."""
    is_integer = isinstance(size, Integral)  # also if it is a symbol
    if is_integer and isinstance(share, (int, float)) and not isinstance(share, bool):
        n: int = trunc(size * share)
        return n
    if is_integer:
        raise ParamcountError(f"= {describe_value(share)}", where=key, expected="a number")
    raise ParamcountError(f"= {describe_value(size)}", where=FieldName("d_head"), expected="an integer")


def find_share(js: ConfigJson, absent: Any) -> Any:
    """The part of a head that rotates. `absent`: if rope_parameters does not state it.

    With proportional rotary positions the whole head does, a part of it by an angle of 0.
    """
    rope = js.get("rope_scaling") or js.get("rope_parameters") or {}
    if rope.get("rope_type", rope.get("type")) == "proportional":
        return 1.0
    return rope.get("partial_rotary_factor", absent)


def times_mlp_ratio(absent: float) -> Derivation:
    """The hidden size of an MLP: d_model times mlp_ratio, rounded down."""
    return lambda js, c: part_of(c["d_model"], js.get("mlp_ratio", absent), "mlp_ratio")


def words_by(choose: Callable[[int, int], int], words: Sequence[str] = SLIDING) -> Derivation:
    """layer_types whose word for layer i of n is words[choose(i, n)]."""
    return lambda js, c: tuple(words[choose(i, c["n_layers"])] for i in per_layer(c))


def full_every(period: int) -> Derivation:
    """layer_types with full attention in every `period`-th layer and sliding attention in the others."""
    return words_by(lambda i, n: (i + 1) % period == 0)


def full_every_stated(absent: int) -> Derivation:
    """The same with the period in sliding_window_pattern."""
    return lambda js, c: full_every(js.get("sliding_window_pattern", absent))(js, c)


def unvisited(js: ConfigJson, c: FieldValues) -> int:
    """1 for a missing num_experts_per_tok, which the reference only reads if a layer has experts.

    Raises: ParamcountError if a layer has experts.
    """
    if c["n_dense_layers"] < c["n_layers"]:
        raise ParamcountError("is missing", where="num_experts_per_tok", expected="a positive integer")
    return 1
