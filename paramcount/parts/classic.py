"""The layer of the first transformer: multi-head attention and a plain MLP, each with a residual and a norm.

The norm stands before (pre-norm) or after (post-norm). Source: arXiv:1706.03762, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from paramcount import flow as ops
from paramcount import parts
from paramcount.flow import Data

QKVO = ("q_proj", "k_proj", "v_proj", "out_proj")


class Stack(NamedTuple):
    """The sizes of one stack of layers where a model has two: stands for the config that a layer reads."""

    n_layers: ops.Size
    n_heads: ops.Size
    d_head: ops.Size
    d_ff: ops.Size


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
    turn: Callable[[Data, Data, Data], parts.Projections] | None = None,
    mix: parts.Mix | None = None,
) -> Data:
    """x to attended x, with n_heads and d_head of c.

    `names`: of the matrices for q, k, v and the output. `bias`: of all of them, or of each. `memory`: where keys and
    values come from instead. `turn`: applied to q, k and v before they meet. `mix`: q, k and v to attended values;
    default: every token sees all of x, or of the memory, whose keys and values are cached.
    """
    source = x if memory is None else memory
    heads, biases = (c.n_heads, c.d_head), [bias] * 4 if isinstance(bias, bool) else bias
    q = ops.linear(x, prefix + names[0], "qkv.q", heads, bias=biases[0])
    k = ops.linear(source, prefix + names[1], "qkv.k", heads, bias=biases[1])
    v = ops.linear(source, prefix + names[2], "qkv.v", heads, bias=biases[2])
    if turn:
        q, k, v = turn(q, k, v)
    a = (mix or (ops.attend if memory is None else ops.attend_to_memory))(q, k, v)  # [n, n_heads, d_head]
    return ops.linear(a, prefix + names[3], "output_projection", x.shape[-1], bias=biases[3])


def causally_if(causal: bool) -> Callable[..., Data]:
    """`mix` of a text to itself, in a decoder or in an encoder."""
    return ops.attend_causally if causal else ops.attend


def crossing(x: Data, prefix: str, body: Callable[..., Data], *reads: Data) -> Data:
    """A decoder's look at an encoder's output, with its residual and its norm. `reads`: what `body` takes beside x."""
    return ops.block(x, prefix, body, reads=reads, part="cross_attention")


def source_states(d_model: ops.Size) -> Data:
    """The output of an encoder that is another model."""
    return ops.given("encoder output", "source", d_model)


def biased_head(h: Data, vocab_size: ops.Size, name: str, bias: str, tied_to: str | None) -> Data:
    """Hidden states to logits. A tied head's bias stands under a name of its own."""
    if tied_to is None:
        return ops.linear(h, name, "lm_head", vocab_size, bias=True)
    return ops.add_vector(ops.linear(h, name, "lm_head", vocab_size, tied_to=tied_to), bias, "lm_head", vocab_size)


def second_bias(c: Any, tokens: Data, name: str) -> tuple[ops.Unreachable, ...]:
    """The bias that a tied head reads, which the reference allocates beside that of an untied head too."""
    if c.tie_word_embeddings:
        return ()
    return (
        ops.Unreachable(
            ops.add_vector(tokens, name, "lm_head", c.vocab_size),
            "an untied LM head reads a bias of its own",
            of_lm_head=True,
        ),
    )


def unread_table(c: Any, tokens: Data, name: str, rows: ops.Size) -> tuple[ops.Unreachable, ...]:
    """The shared token embedding, which the reference allocates even if encoder and decoder are untied."""
    table = ops.lookup(tokens, name, "embedding", rows, c.d_model)
    return (ops.Unreachable(table, "untied, the encoder and the decoder read embeddings of their own"),)


def first_pooled(x: Data, name: str) -> Data:
    """The first token's vector through a matrix and tanh, beside x: what classifiers stand on."""
    return ops.bundle(x, ops.activate(ops.linear(ops.first_token(x), name, "other", x.shape[-1], bias=True), "tanh"))
