"""Encoder-decoders of the BART kind: one token embedding for both stacks.

Decoder layers have cross-attention to the encoder's output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from paramcount.flow import Data, Size, activate, block, elementwise, given, layers, linear, lookup, norm
from paramcount.parts.classic import (
    QKVO,
    Stack,
    crossing,
    decoder_stack,
    encoder_stack,
    multi_head,
    norm_before,
    norm_behind,
    positions,
    source_states,
)
from paramcount.parts.feed_forward import plain_mlp


class Layout(NamedTuple):
    """What BART's relatives differ in."""

    before: bool = False  # norms stand before what they belong to
    extra_places: int = 0  # positions that no text reaches
    tables_normed: bool = False  # a norm behind the tables
    last_norm: str = ""  # one behind the last layer


class Tables(NamedTuple):
    """Rows of the token embedding and of the LM head, and what they are tied to."""

    source: Size
    target: Size
    head: Size
    shared: str | None  # the one table in the place of both
    head_tied_to: str | None


def usual_tables(c: Any) -> Tables:
    shared = "model.shared.weight" if c.tie_word_embeddings else None
    return Tables(c.vocab_size, c.vocab_size, c.vocab_size, shared, shared)


def seq2seq(
    c: Any,
    tokens: Data,
    layout: Layout,
    *,
    head: bool = True,
    tables: Tables | None = None,
    names: Sequence[str] = QKVO,
    **options: Any,
) -> Data:
    """Token ids to logits, or without `head` to the decoder's hidden states.

    `names`: of the matrices of the encoder's attention. `options`: of every attention.
    """
    t = tables or usual_tables(c)
    memory = encoder_output(c, layout, t, names=names, **options)
    x = target_tokens(c, tokens, layout, t)
    x = bart_layers(decoder_stack(c), x, "model.decoder.", layout, memory, **options)
    return biased_logits(x, t) if head else x


def encoder_output(c: Any, layout: Layout, t: Tables, **options: Any) -> Data:
    """Another text's token ids to what the decoder looks at. `options`: of bart_layer."""

    def encoder(tokens: Data) -> Data:
        x = lookup(tokens, f"/{t.shared}" if t.shared else "embed_tokens.weight", "embedding", t.source, c.d_model)
        return bart_layers(encoder_stack(c), placed(c, x, tokens, "", layout), "", layout, cached=False, **options)

    return block(given("source tokens", "source"), "model.encoder.", encoder, part="encoder")


def target_tokens(c: Any, tokens: Data, layout: Layout, t: Tables) -> Data:
    """What the decoder's layers start from."""
    name, component = "model.decoder.embed_tokens.weight", "embedding" if t.shared else "other_embedding"
    x = lookup(tokens, name, component, t.source if t.shared else t.target, c.d_model, tied_to=t.shared)
    return placed(c, x, tokens, "model.decoder.", layout)


def biased_logits(x: Data, t: Tables) -> Data:
    """Hidden states to logits, and a bias that is kept but not learned."""
    logits = linear(x, "lm_head", "lm_head", t.head, tied_to=t.head_tied_to)
    return elementwise(logits, "add bias", "final_logits_bias", "lm_head", 1, t.head, role="buffer")


def decoder_alone(
    c: Any,
    tokens: Data,
    layout: Layout,
    *,
    head_name: str = "lm_head",
    vocabulary: tuple[Size, Size] | None = None,
    places: bool = True,
    d_memory: Size | None = None,
    **options: Any,
) -> Data:
    """The decoder without its encoder, whose output it still looks at.

    `vocabulary`: rows of the token embedding and of the LM head, unless vocab_size. `places`: there is a table of them.
    `d_memory`: the width of the encoder's output, unless d_model.
    """
    prefix = "model.decoder."
    rows, classes = vocabulary or (c.vocab_size, c.vocab_size)
    x = lookup(tokens, prefix + "embed_tokens.weight", "embedding", rows, c.d_model)
    x = placed(c, x, tokens, prefix, layout, places=places)
    memory = source_states(c.d_model if d_memory is None else d_memory)
    x = bart_layers(Stack(c.n_layers, c.n_heads, c.d_head, c.d_ff), x, prefix, layout, memory, **options)
    tied = getattr(c, "tie_word_embeddings", False)
    return linear(x, head_name, "lm_head", classes, tied_to=prefix + "embed_tokens.weight" if tied else None)


def placed(c: Any, x: Data, tokens: Data, prefix: str, layout: Layout, *, places: bool = True) -> Data:
    """Looked-up tokens with their places.

    `places`: there is a table of them; else they are worked out and not stored.
    """
    if places:
        rows = c.n_positions + layout.extra_places if layout.extra_places else c.n_positions
        x = positions(x, tokens, prefix + "embed_positions", rows)
    else:
        x = activate(x, "sines of places")
    return norm(x, prefix + "layernorm_embedding", bias=True) if layout.tables_normed else x


def bart_layers(c: Stack, x: Data, prefix: str, layout: Layout, *memory: Data, **options: Any) -> Data:
    """The layers of one stack, and the norm behind them. `options`: of bart_layer."""
    body = bart_layer
    x = layers(
        x,
        prefix + "layers.{layer}.",
        [("layer", c.n_layers)],
        lambda kind, x, *m: body(c, x, layout, *m, **options),
        reads=memory,
    )
    return norm(x, prefix + layout.last_norm, bias=True) if layout.last_norm else x


def bart_layer(
    c: Stack, x: Data, layout: Layout, *memory: Data, names: Sequence[str] = QKVO, cached: bool = True, **options: Any
) -> Data:
    """Self-attention, a look at the encoder's output where there is one, a plain MLP.

    `names`: of the self-attention's matrices. `options`: of both attentions.
    """
    arrange = norm_before if layout.before else norm_behind
    x = arrange(x, lambda h: multi_head(c, h, "self_attn.", names, cached=cached, **options), "self_attn_layer_norm")
    for source in memory:
        x = crossing(
            x,
            "",
            lambda x, m: arrange(
                x, lambda h: multi_head(c, h, "encoder_attn.", memory=m, **options), "encoder_attn_layer_norm"
            ),
            source,
        )
    return arrange(x, lambda h: plain_mlp(h, ("fc1", "fc2"), "mlp", c.d_ff, bias=True), "final_layer_norm")
