"""The layer of the first transformer: multi-head attention and a plain MLP, each with a residual and a norm.

The norm stands before (pre-norm) or after (post-norm). Source: arXiv:1706.03762, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from paramcount.flow import (
    Data,
    Size,
    Unknown,
    Unreachable,
    activate,
    add_vector,
    attend,
    block,
    bundle,
    first_token,
    given,
    linear,
    lookup,
    put_in_front,
)

QKVO = ("q_proj", "k_proj", "v_proj", "out_proj")


class Stack(NamedTuple):
    """The sizes of one stack of layers where a model has two: stands for the config that a layer reads."""

    n_layers: Size
    n_heads: Size
    d_head: Size
    d_ff: Size


def encoder_stack(c: Any) -> Stack:
    return Stack(c.n_encoder_layers, c.n_encoder_heads, c.d_encoder_head, c.d_encoder_ff)


def decoder_stack(c: Any) -> Stack:
    return Stack(c.n_decoder_layers, c.n_decoder_heads, c.d_decoder_head, c.d_decoder_ff)


def multi_head(
    c: Any,
    x: Data,
    prefix: str,
    names: Sequence[str] = QKVO,
    *,
    memory: Data | None = None,
    cached: bool = True,
    bias: bool = True,
    k_bias: bool | None = None,
    o_bias: bool | None = None,
    turn: Callable[[Data, Data, Data], tuple[Data, Data, Data]] | None = None,
    biases: Sequence[Data] = (),
    scale: float | None = None,
    window: Size | None = None,
    longest: int | Unknown | None = None,
    prompt: tuple[Data, Data] | None = None,
    causal: bool | None = None,
    chunk: Size | None = None,
    chunk_offset: Size = 0,
    within: Data | tuple[Data, Data] | None = None,
    front_in_order: bool = False,
) -> Data:
    """x to attended x, with n_heads and d_head of c.

    `names`: of the matrices for q, k, v and the output. `memory`: where keys and values come from instead. `cached`:
    whether later tokens look back on them, which an encoder has none of. `k_bias`, `o_bias`: as `bias` unless given.
    `turn`: applied to q, k and v before the attention. `biases`: added to the scores. `scale`: default 1 / √d_head.
    `prompt`: keys and values in front of the others, which no cache holds. `causal`, `chunk`, `chunk_offset`,
    `within`, `front_in_order`: as in `attend`.
    """
    source = x if memory is None else memory
    heads = (c.n_heads, c.d_head)
    q = linear(x, prefix + names[0], "qkv.q", heads, bias=bias)
    k = linear(source, prefix + names[1], "qkv.k", heads, bias=bias if k_bias is None else k_bias)
    v = linear(source, prefix + names[2], "qkv.v", heads, bias=bias)
    if turn:
        q, k, v = turn(q, k, v)
    kept = (k, v) if cached else ()
    if prompt:
        k, v = put_in_front(prompt[0], k), put_in_front(prompt[1], v)
    a = attend(
        q, k, v, *biases, cached=kept, scale=scale, window=window, longest=longest, causal=causal, chunk=chunk,
        chunk_offset=chunk_offset, within=within, front_in_order=front_in_order,
    )  # fmt: skip
    return linear(a, prefix + names[3], "output_projection", x.shape[-1], bias=bias if o_bias is None else o_bias)


def crossing(x: Data, prefix: str, body: Callable[..., Data], *reads: Data) -> Data:
    """A decoder's look at an encoder's output, with its residual and its norm. `reads`: what `body` takes beside x."""
    return block(x, prefix, body, reads=reads, part="cross_attention")


def source_states(d_model: Size) -> Data:
    """The output of an encoder that is another model."""
    return given("encoder output", "source", d_model)


def biased_head(h: Data, vocab_size: Size, name: str, bias: str, tied_to: str | None) -> Data:
    """Hidden states to logits. A tied head's bias stands under a name of its own."""
    if tied_to is None:
        return linear(h, name, "lm_head", vocab_size, bias=True)
    return add_vector(linear(h, name, "lm_head", vocab_size, tied_to=tied_to), bias, "lm_head", vocab_size)


def second_bias(c: Any, tokens: Data, name: str) -> tuple[Unreachable, ...]:
    """The bias that a tied head reads, which the reference allocates beside that of an untied head too."""
    if c.tie_word_embeddings:
        return ()
    return (
        Unreachable(
            add_vector(tokens, name, "lm_head", c.vocab_size),
            "an untied LM head reads a bias of its own",
            of_lm_head=True,
        ),
    )


def unread_table(c: Any, tokens: Data, name: str, rows: Size) -> tuple[Unreachable, ...]:
    """The shared token embedding, which the reference allocates even if encoder and decoder are untied."""
    table = lookup(tokens, name, "embedding", rows, c.d_model)
    return (Unreachable(table, "untied, the encoder and the decoder read embeddings of their own"),)


def first_pooled(x: Data, name: str) -> Data:
    """The first token's vector through a matrix and tanh, beside x: what classifiers stand on."""
    return bundle(x, activate(linear(first_token(x), name, "other", x.shape[-1], bias=True), "tanh"))
