"""The usual decoder around its layers: token embedding, layers of named kinds, last norm, output head."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from paramcount import flow as ops
from paramcount import parts
from paramcount.errors import ParamcountError
from paramcount.flow import Data
from paramcount.symbolic.arrays import is_array


def head(c: Any, x: Data, table: str, name: str = "lm_head", *, bias: bool = False) -> Data:
    """Hidden states to logits, through the token embedding if it is tied.

    A config without the flag never ties it.
    """
    return ops.linear(
        x, name, "lm_head", c.vocab_size, bias=bias, tied_to=table if getattr(c, "tie_word_embeddings", False) else None
    )


def pre_norm(
    x: Data,
    attention: Callable[[Data], Data],
    feed_forward: Callable[[Data], Data],
    names: tuple[str, str] = ("input_layernorm", "post_attention_layernorm"),
    *,
    bias: bool = False,
) -> Data:
    """The usual layer: norm, attention, residual; norm, feed-forward, residual."""
    x = x + attention(ops.norm(x, names[0], bias=bias))
    return x + feed_forward(ops.norm(x, names[1], bias=bias))


def post_norm(
    x: Data,
    attention: Callable[[Data], Data],
    feed_forward: Callable[[Data], Data],
    names: tuple[str, str] = ("post_attention_layernorm", "post_feedforward_layernorm"),
    *,
    bias: bool = False,
) -> Data:
    """Norms behind attention and feed-forward, inside the residual: OLMo 2."""
    x = x + ops.norm(attention(x), names[0], bias=bias)
    return x + ops.norm(feed_forward(x), names[1], bias=bias)


def usual_layer(c: Any, x: Data, window: ops.Size | None = None) -> Data:
    """The layer of most decoders since Llama: attention, then a gated MLP of size d_ff."""
    return pre_norm(
        x,
        lambda h: parts.attentions.attention(c, h, "self_attn.", mix=partial(ops.attend_causally, window=window)),
        lambda h: parts.gated_mlp(h, "mlp.", "mlp", c.d_ff),
    )


def dense_or_moe(dense_layers: Sequence[int], n_layers: ops.Size) -> list[tuple[str, ops.Size]]:
    """Kinds of a decoder whose layers are mixtures of experts but for these."""
    kinds: list[tuple[str, ops.Size]] = []
    reached = 0
    for i in dense_layers:
        kinds += [("moe", i - reached), ("dense", 1)]
        reached = i + 1
    return [*kinds, ("moe", n_layers - reached)]


def typed_layers(words: Sequence[str], dense_layers: Sequence[int]) -> list[tuple[Hashable, ops.Size]]:
    """Kinds of a decoder whose layers differ in two ways: ((word of its attention, "dense" or "moe"), 1), ..."""
    dense = set(dense_layers)
    return [((word, "dense" if i in dense else "moe"), 1) for i, word in enumerate(words)]


def has_layers(n_layers: ops.Size) -> bool:
    """Whether a stack has layers at all. Those of an array either all have some or none."""
    is_empty = n_layers == 0
    if not is_array(is_empty):
        return not is_empty
    if is_empty.any() != is_empty.all():
        raise ParamcountError("is 0 in some places only", where="the number of layers", expected="one structure")
    return not is_empty.all()


def first_differs(
    n_layers: ops.Size, first: Hashable = "first", others: Hashable = "layer"
) -> list[tuple[Hashable, ops.Size]]:
    """Kinds of a stack whose first layer differs from the others; none without layers."""
    return [(first, 1), (others, n_layers - 1)] if has_layers(n_layers) else []


def last_differs(
    n_layers: ops.Size, last: Hashable = "last", others: Hashable = "layer"
) -> list[tuple[Hashable, ops.Size]]:
    """Kinds of a stack whose last layer differs from the others; none without layers."""
    return [(others, n_layers - 1), (last, 1)] if has_layers(n_layers) else []


def layers_by_type(c: Any) -> list[tuple[Hashable, ops.Size]]:
    """`kinds` of a decoder with layer_types."""
    return [(word, 1) for word in c.layer_types]


def layers_by_setting(c: Any) -> list[tuple[Hashable, ops.Size]] | None:
    """`kinds` of a decoder whose layer_types are a setting, on which no weight depends; None if they are all alike."""
    return layers_by_type(c) if ops.is_known(c.layer_types) and c.layer_types else None


def layers_by_mlp(c: Any) -> list[tuple[str, ops.Size]]:
    """`kinds` of a decoder with dense_layers: "dense" or "moe"."""
    return dense_or_moe(c.dense_layers, c.n_layers)


def layers_by_type_and_mlp(c: Any) -> list[tuple[Hashable, ops.Size]]:
    """`kinds` of a decoder with layer_types and dense_layers: (word, "dense" or "moe")."""
    return typed_layers(c.layer_types, c.dense_layers)


def layers_by_setting_and_mlp(c: Any) -> list[tuple[Hashable, ops.Size]]:
    """`kinds` of a decoder with dense_layers whose layer_types are a setting: (word, "dense" or "moe"), or only the
    second if the layers differ in nothing else.
    """
    return layers_by_type_and_mlp(c) if layers_by_setting(c) else [*layers_by_mlp(c)]


def use_rms_norm(c: Any, x: Data, name: str) -> Data:
    """`norm` of an encoder with RMS norms."""
    return ops.rms_norm(x, name, c.norm_eps)


def use_layer_norm(c: Any, x: Data, name: str) -> Data:
    """`norm` of a decoder with LayerNorms."""
    return ops.layer_norm(x, name, c.norm_eps)


def dense_first(c: Any) -> list[tuple[str, ops.Size]]:
    """Kinds of a decoder whose first n_dense_layers have no experts."""
    return [("dense", c.n_dense_layers), ("moe", c.n_layers - c.n_dense_layers)]
