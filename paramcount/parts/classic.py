"""The layer of the first transformer: multi-head attention and a plain MLP, each with a residual and a norm.

The norm stands before (pre-norm) or after (post-norm). Source: arXiv:1706.03762, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from paramcount.flow import (
    Data,
    Size,
    Unreachable,
    activate,
    add_vector,
    attend,
    attend_causally,
    attend_to_memory,
    block,
    bundle,
    first_token,
    given,
    linear,
    lookup,
)
from paramcount.parts.attentions import Mix, Projections

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
    bias: bool | Sequence[bool] = True,
    memory: Data | None = None,
    turn: Callable[[Data, Data, Data], Projections] | None = None,
    mix: Mix | None = None,
) -> Data:
    """x to attended x, with n_heads and d_head of c.

    `names`: of the matrices for q, k, v and the output. `bias`: of all of them, or of each. `memory`: where keys and
    values come from instead. `turn`: applied to q, k and v before they meet. `mix`: q, k and v to attended values;
    default: every token sees all of x, or of the memory, whose keys and values are cached.
    """
    source = x if memory is None else memory
    heads, biases = (c.n_heads, c.d_head), [bias] * 4 if isinstance(bias, bool) else bias
    q = linear(x, prefix + names[0], "qkv.q", heads, bias=biases[0])
    k = linear(source, prefix + names[1], "qkv.k", heads, bias=biases[1])
    v = linear(source, prefix + names[2], "qkv.v", heads, bias=biases[2])
    if turn:
        q, k, v = turn(q, k, v)
    a = (mix or (attend if memory is None else attend_to_memory))(q, k, v)  # [n, n_heads, d_head]
    return linear(a, prefix + names[3], "output_projection", x.shape[-1], bias=biases[3])


def causally_if(causal: bool) -> Callable[..., Data]:
    """`mix` of a text to itself, in a decoder or in an encoder."""
    return attend_causally if causal else attend


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
