"""The usual decoder around its layers: token table, layers of named kinds, last norm, output head."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from paramcount.flow import Data, Size, layers, linear, lookup, norm
from paramcount.parts.attentions import attention
from paramcount.parts.feed_forward import gated_mlp


def decoder(
    c: Any,
    tokens: Data,
    layer: Callable[..., Data],
    kinds: Iterable[tuple[Hashable, Size]] | None = None,
    *,
    prefix: str = "model.",
    names: tuple[str, str, str] = ("embed_tokens", "layers", "norm"),
    head_name: str = "lm_head",
    extra_rows: int = 0,
    reads: Sequence[Data] = (),
) -> Data:
    """Token ids to logits. `layer(c, kind, x, *reads)` is written once for each kind (all layers are of one unless `kinds` says
    otherwise). `names`: of the table, the stack and the last norm. `extra_rows`: rows of the table that the head lacks."""
    table, stack, last_norm = (prefix + name for name in names)
    x = lookup(tokens, f"{table}.weight", "embedding", c.vocab_size + extra_rows if extra_rows else c.vocab_size, c.d_model)
    x = layers(x, stack + ".{layer}.", kinds or [("layer", c.n_layers)], lambda kind, *inputs: layer(c, kind, *inputs), reads=reads)
    return head(c, norm(x, last_norm), f"{table}.weight", head_name)


def head(c: Any, x: Data, table: str, name: str = "lm_head") -> Data:
    """Hidden states to logits, through the token table where it is tied."""
    return linear(x, name, "lm_head", c.vocab_size, tied_to=table if c.tie_word_embeddings else None)


def pre_norm(
    x: Data,
    attention: Callable[[Data], Data],
    feed_forward: Callable[[Data], Data],
    names: tuple[str, str] = ("input_layernorm", "post_attention_layernorm"),
    *,
    bias: bool = False,
) -> Data:
    """The usual layer: norm, attention, residual; norm, feed-forward, residual."""
    x = x + attention(norm(x, names[0], bias=bias))
    return x + feed_forward(norm(x, names[1], bias=bias))


def usual_layer(
    c: Any,
    x: Data,
    feed_forward: Callable[[Data], Data] | None = None,
    *,
    attend: Callable[..., Data] | None = None,
    mlp_bias: bool = False,
    **options: Any,
) -> Data:
    """The layer that most decoders since Llama have: attention over heads unless `attend` is another (`options` are its), then a
    gated MLP of width d_ff unless `feed_forward` is another."""
    return pre_norm(
        x,
        lambda h: (attend or attention)(c, h, "self_attn.", **options),
        feed_forward or (lambda h: gated_mlp(h, "mlp.", "mlp", c.d_ff, bias=mlp_bias)),
    )


def dense_or_moe(dense_layers: Sequence[int], n_layers: Size) -> list[tuple[str, Size]]:
    """Kinds of a decoder whose layers are mixtures of experts but for these."""
    if not dense_layers:
        return [("moe", n_layers)]
    dense = set(dense_layers)
    return [("dense" if i in dense else "moe", 1) for i in range(n_layers)]


def dense_first(c: Any) -> list[tuple[str, Size]]:
    """Kinds of a decoder whose first n_dense_layers have no experts."""
    return [("dense", c.n_dense_layers), ("moe", c.n_layers - c.n_dense_layers)]
