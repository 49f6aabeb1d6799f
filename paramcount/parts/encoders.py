"""Encoders of the BERT kind: three tables summed, layers, a pooler for classifiers, the masked language model's head.

Source: arXiv:1810.04805, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from paramcount.flow import Data, Size, activate, block, given, layers, linear, lookup, norm
from paramcount.parts.classic import (
    biased_head,
    crossing,
    first_pooled,
    multi_head,
    norm_before,
    norm_behind,
    positions,
    source_states,
)
from paramcount.parts.feed_forward import plain_mlp

BERT = ("self.query", "self.key", "self.value", "output.dense")  # matrices of an attention
BEHIND = ("output.LayerNorm", "output.LayerNorm")  # norms of attention and MLP
BERT_HEAD = (
    "cls.predictions.transform.dense",
    "cls.predictions.transform.LayerNorm",
    "cls.predictions.decoder",
    "cls.predictions.bias",
)
ROBERTA_HEAD = ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias")


def whole(c: Any, tokens: Data, build: Callable[..., Data], *, inputs: Sequence[str] = ("segments",)) -> Data:
    """The model as one part: an encoder, or a decoder where the config makes it one.

    `inputs`: what it looks up beside tokens; `build` takes tokens, these, and where there is cross-attention an
    encoder's output.
    """
    reads = [given(name, "tokens") for name in inputs]
    if getattr(c, "cross_attention", False):
        reads.append(source_states(c.d_model))
    return block(tokens, "", build, reads=reads, part="decoder" if getattr(c, "is_decoder", False) else "encoder")


def embeddings(
    c: Any, tokens: Data, segments: Data | None, prefix: str, width: Size, *, placed: bool = True, normed: bool = True
) -> Data:
    """Tokens, their segments and their places looked up and summed.

    `placed`: with a table of places. `normed`: with a norm behind.
    """
    names = prefix + "embeddings."
    x = lookup(tokens, names + "word_embeddings.weight", "embedding", c.vocab_size, width)
    if segments is not None:
        x = x + lookup(segments, names + "token_type_embeddings.weight", "other_embedding", c.n_token_types, width)
    if placed:
        x = positions(x, tokens, names + "position_embeddings", c.n_positions)
    return norm(x, names + "LayerNorm", bias=True) if normed else x


def bert_attention(
    c: Any,
    x: Data,
    *memory: Data,
    name: str = BEHIND[0],
    before: bool = False,
    qkv_bias: bool = True,
    turn: Callable[[Data, Data, Data], tuple[Data, Data, Data]] | None = None,
) -> Data:
    """The first half of a layer: attention over heads, and cross-attention where there is a memory.

    `name`: of the norm, inside the attention. `before`: it stands before what it belongs to.
    """
    arrange = norm_before if before else norm_behind

    def look(h: Data, prefix: str, memory: Data | None = None) -> Data:
        turned = turn if memory is None else None
        cached = getattr(c, "is_decoder", True) or memory is not None  # an encoder has no later tokens to keep them for
        return multi_head(c, h, prefix, BERT, memory=memory, cached=cached, bias=qkv_bias, o_bias=True, turn=turned)

    x = arrange(x, lambda h: look(h, "attention."), "attention." + name)
    for source in memory:
        x = crossing(x, "crossattention.", lambda x, source: arrange(x, lambda h: look(h, "", source), name), source)
    return x


def bert_layer(
    c: Any, x: Data, *memory: Data, norms: tuple[str, str] = BEHIND, before: bool = False, **options: Any
) -> Data:
    """Attention, then a plain MLP of width d_ff.

    `norms`: their names, `before`: they stand before. `options`: of the attention.
    """
    x = bert_attention(c, x, *memory, name=norms[0], before=before, **options)
    arrange = norm_before if before else norm_behind
    return arrange(
        x, lambda h: plain_mlp(h, ("intermediate.dense", "output.dense"), "mlp", c.d_ff, bias=True), norms[1]
    )


def bert_body(
    c: Any,
    x: Data,
    memory: Sequence[Data],
    prefix: str,
    *,
    last_norm: str = "",
    pooler: str = "pooler.dense",
    **options: Any,
) -> Data:
    """Summed embeddings to hidden states, pooled ones beside them where c.pooled.

    `last_norm`: of a model whose norms stand before. `options`: of bert_layer.
    """
    x = layers(
        x,
        prefix + "encoder.layer.{layer}.",
        [("layer", c.n_layers)],
        lambda kind, x, *m: bert_layer(c, x, *m, **options),
        reads=memory,
    )
    if last_norm:
        x = norm(x, prefix + last_norm, bias=True)
    return first_pooled(x, prefix + pooler) if getattr(c, "pooled", False) else x


def masked_head(
    c: Any, x: Data, table: str, names: tuple[str, str, str, str] = BERT_HEAD, width: Size | None = None
) -> Data:
    """Hidden states to logits: matrix, activation, norm, then the token embedding or a head of its own.

    `names`: of matrix, norm, head and the bias of a tied head. `width`: of the vectors that the head reads, unless
    d_model.
    """
    h = activate(linear(x, names[0], "other", c.d_model if width is None else width, bias=True), "gelu")
    tied = getattr(c, "tie_word_embeddings", False)
    return biased_head(
        norm(h, names[1], bias=True), c.vocab_size, names[2], names[3], table + ".weight" if tied else None
    )


def masked_lm(
    c: Any,
    tokens: Data,
    head: bool,
    prefix: str,
    names: tuple[str, str, str, str] = BERT_HEAD,
    *,
    embed: Callable[..., Data] | None = None,
    inputs: Sequence[str] = ("segments",),
    width: Size | None = None,
    **options: Any,
) -> Data:
    """Token ids to logits, or without `head` to hidden states.

    `embed`: tokens and `inputs` to the first layer's vectors, where that is not the three tables. `names`, `width`: of
    the head. `options`: of the body.
    """

    def build(tokens: Data, *reads: Data) -> Data:
        looked_up, memory = reads[: len(inputs)], reads[len(inputs) :]
        x = embed(tokens, *looked_up) if embed else embeddings(c, tokens, looked_up[0], prefix, c.d_model)
        x = bert_body(c, x, memory, prefix, **options)
        return masked_head(c, x, prefix + "embeddings.word_embeddings", names, width) if head else x

    return whole(c, tokens, build, inputs=inputs)
