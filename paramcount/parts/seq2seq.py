"""Encoder-decoders of the BART kind: one token embedding for both stacks.

Decoder layers have cross-attention to the encoder's output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

DECODER = "model.decoder."


def scale_embedding(default: bool) -> Any:
    """The setting of what token embeddings are multiplied by: √d_model, or 1. `default`: of scale_embedding."""
    return sizes.setting(default=lambda js, c: sqrt(c.d_model) if js.get("scale_embedding", default) else 1.0)


def first_after_padding(absent: int) -> Any:
    """The setting of the first token's position. `absent`: the default of pad_token_id."""
    return sizes.setting(default=lambda js, c: js.get("pad_token_id", absent) + 1)


class Tables(NamedTuple):
    """Rows of the token embedding and of the LM head, and what they are tied to."""

    source: ops.Size
    target: ops.Size
    head: ops.Size
    shared: str | None  # the one table in the place of both
    head_tied_to: str | None


class Stacks(sizes.Sizes):
    """What stacks of layers of this kind share. A subclass states the order of a layer, `layer`."""

    layer: ClassVar[Callable[..., Data]]  # (stack, x, *memory) to x
    position_offset: ClassVar[int] = 0  # rows of the position embedding before that of the first token
    norms_embedding: ClassVar[bool] = False  # a norm behind the embeddings
    last_norm: ClassVar[str] = ""  # name of the norm behind the last layer
    k_bias: ClassVar[bool] = True

    activation: ClassVar = sizes.setting("activation_function", usual="gelu")
    embedding_scale: ClassVar = scale_embedding(default=False)
    if TYPE_CHECKING:  # fields of the subclasses
        d_model: sizes.Positive
        n_positions: sizes.Natural

    norm_eps: ClassVar[float] = 1e-5  # of torch.nn.LayerNorm: no config.json states it

    def embed(c, x: Data, tokens: Data, prefix: str) -> Data:
        """Looked-up tokens to what the first layer reads."""
        return c.place(c.scale(x), tokens, prefix)

    def scale(c, x: Data) -> Data:
        return ops.scale_by(x, c.embedding_scale, "times √d_model")

    def place(c, x: Data, tokens: Data, prefix: str) -> Data:
        """Embedded tokens with their positions."""
        x = x + c.positions(tokens, prefix)
        return c.norm(x, prefix + "layernorm_embedding") if c.norms_embedding else x

    def positions(c, tokens: Data, prefix: str) -> Data:
        rows, name = c.n_positions, prefix + "embed_positions.weight"
        rows = rows + c.position_offset if c.position_offset else rows
        return ops.lookup_position(tokens, name, rows, c.d_model, offset=c.position_offset)

    def stack(c, s: parts.Stack, x: Data, prefix: str, *memory: Data) -> Data:
        """The layers of one stack, and the norm behind them."""
        kinds = [("layer", s.n_layers)]
        x = ops.layers(x, prefix + "layers.{layer}.", kinds, lambda kind, x, *m: c.layer(s, x, *m), reads=memory)
        return c.norm(x, prefix + c.last_norm) if c.last_norm else x

    def self_attention(c, s: parts.Stack, x: Data, *, cached: bool) -> Data:
        return parts.multi_head(s, x, "self_attn.", bias=(True, c.k_bias, True, True), mix=parts.causally_if(cached))

    def cross_attention(c, s: parts.Stack, x: Data, memory: Data) -> Data:
        return parts.multi_head(s, x, "encoder_attn.", bias=(True, c.k_bias, True, True), memory=memory)

    def feed_forward(c, s: parts.Stack, x: Data) -> Data:
        return parts.plain_mlp(x, ("fc1", "fc2"), "mlp", s.d_ff, activation=c.activation, bias=True)

    norm = parts.use_layer_norm


def post_norm_layer(c: Stacks, s: parts.Stack, x: Data, *memory: Data) -> Data:
    """Attention, cross-attention and MLP, each with a norm behind its residual.

    Source: arXiv:1706.03762, section 3.1; BartEncoderLayer and BartDecoderLayer.
    """
    x = c.norm(x + c.self_attention(s, x, cached=bool(memory)), "self_attn_layer_norm")
    for m in memory:
        x = parts.crossing(x, "", lambda x, m: c.norm(x + c.cross_attention(s, x, m), "encoder_attn_layer_norm"), m)
    return c.norm(x + c.feed_forward(s, x), "final_layer_norm")


def pre_norm_layer(c: Stacks, s: parts.Stack, x: Data, *memory: Data) -> Data:
    """The same with each norm before what it belongs to.

    Source: arXiv:2001.08210, section 2.2; MBartEncoderLayer and MBartDecoderLayer.
    """
    x = x + c.self_attention(s, c.norm(x, "self_attn_layer_norm"), cached=bool(memory))
    for m in memory:
        x = parts.crossing(x, "", lambda x, m: x + c.cross_attention(s, c.norm(x, "encoder_attn_layer_norm"), m), m)
    return x + c.feed_forward(s, c.norm(x, "final_layer_norm"))


class TargetStack(Stacks):
    """The decoder beside an encoder of any kind, and the LM head. A subclass adds the sizes of the decoder."""

    has_logits_bias: ClassVar[bool] = True  # kept but not learned
    # Names of the stacks, and of the token embedding that they share.
    stack_names: ClassVar[tuple[str, str, str]] = ("model.encoder.", DECODER, "model.shared.weight")
    if TYPE_CHECKING:  # fields of the subclasses
        vocab_size: sizes.Positive
        tie_word_embeddings: sizes.Flag

    def decode(c, tokens: Data, memory: Data) -> Data:
        return c.stack(parts.decoder_stack(c), c.embed_target(tokens), c.stack_names[1], memory)

    def embed_target(c, tokens: Data) -> Data:
        """What the decoder's layers start from."""
        t, prefix = c.tables(), c.stack_names[1]
        rows, component = (t.source, "embedding") if t.shared else (t.target, "other_embedding")
        x = ops.lookup(tokens, prefix + "embed_tokens.weight", component, rows, c.d_model, tied_to=t.shared)
        return c.embed(x, tokens, prefix)

    def logits(c, x: Data) -> Data:
        t = c.tables()
        x = ops.linear(x, "lm_head", "lm_head", t.head, tied_to=t.head_tied_to)
        return ops.add_vector(x, "final_logits_bias", "lm_head", 1, t.head, role="buffer") if c.has_logits_bias else x

    def tables(c) -> Tables:
        shared = c.stack_names[2] if c.tie_word_embeddings else None
        return Tables(c.vocab_size, c.vocab_size, c.vocab_size, shared, shared)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        return () if c.tie_word_embeddings else parts.unread_table(c, tokens, c.stack_names[2], c.vocab_size)


class Seq2Seq(TargetStack, parts.Headed):
    """An encoder and a decoder."""

    table_copies: ClassVar[Mapping[str, str]] = {"shared": "encoder.embed_tokens"}
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_inside(1),)

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf("hidden_size", "d_model")
    n_encoder_layers: sizes.Natural = sizes.hf("num_hidden_layers", "encoder_layers")
    n_decoder_layers: sizes.Natural = sizes.hf()
    n_encoder_heads: sizes.Positive = sizes.hf("num_attention_heads", "encoder_attention_heads")
    n_decoder_heads: sizes.Positive = sizes.hf()
    d_encoder_head: sizes.Positive = sizes.derived(sizes.d_model_per("n_encoder_heads"))
    d_decoder_head: sizes.Positive = sizes.derived(sizes.d_model_per("n_decoder_heads"))
    d_encoder_ff: sizes.Natural = sizes.hf()
    d_decoder_ff: sizes.Natural = sizes.hf()
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def forward(c, tokens: Data, head: bool = True) -> Data:
        x = c.decode(tokens, c.encode(ops.given("source tokens", "source")))
        return c.logits(x) if head else x

    def encode(c, tokens: Data) -> Data:
        t = c.tables()

        def encoder(tokens: Data) -> Data:
            table = f"/{t.shared}" if t.shared else "embed_tokens.weight"
            x = ops.lookup(tokens, table, "embedding", t.source, c.d_model)
            return c.stack(parts.encoder_stack(c), c.embed(x, tokens, ""), "")

        return ops.block(tokens, c.stack_names[0], encoder, part="encoder")

    def check(c) -> None:
        sizes.check_stack_heads(c)


class Sinusoidal(TargetStack):
    """Sines and cosines that no file stores, numbered from behind the padding token."""

    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_inside(1), sizes.positions_after_padding(1))
    has_logits_bias = False
    last_norm = "layer_norm"

    activation: ClassVar = sizes.setting("activation_function", usual="relu")
    embedding_scale: ClassVar = scale_embedding(default=True)
    first_position: ClassVar = first_after_padding(1)

    def embed(c, x: Data, tokens: Data, prefix: str) -> Data:
        x = ops.scale_by(x, c.embedding_scale, "times √d_model")
        return x + ops.sinusoids(x, slowest="base", offset=c.first_position)

    def check(c) -> None:
        super().check()
        sizes.check_sinusoids(c)


class SinusoidalSeq2Seq(Sinusoidal, Seq2Seq):
    """An encoder and a decoder with such positions, which no table ends: the reference makes more of them."""

    n_positions: sizes.Natural = sizes.hf("max_position_embeddings")


class UntiedDecoder(Stacks):
    """A decoder without its encoder, whose output it still reads."""

    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_inside(1),)
    head_name: ClassVar[str] = "lm_head"
    takes_states: ClassVar[bool] = True  # of an encoder of any type, in an encoder-decoder pair

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf("hidden_size", "d_model")
    n_layers: sizes.Natural = sizes.hf("decoder_layers")
    n_heads: sizes.Positive = sizes.hf("decoder_attention_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf("decoder_ffn_dim")
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")

    def forward(c, tokens: Data) -> Data:
        return c.read(tokens, c.list_inputs(tokens), (c.source(),))

    def list_inputs(c, tokens: Data) -> list[Data]:
        """What is looked up besides the tokens: nothing."""
        return []

    def read(c, tokens: Data, inputs: Sequence[Data], memory: Sequence[Data], *, head: bool = True) -> Data:
        """Token ids and an encoder's output to logits, or without `head` to hidden states."""
        n_rows, n_classes = c.vocabulary()
        table = DECODER + "embed_tokens.weight"
        x = c.embed(ops.lookup(tokens, table, "embedding", n_rows, c.d_model), tokens, DECODER)
        x = c.stack(parts.Stack(c.n_layers, c.n_heads, c.d_head, c.d_ff), x, DECODER, *memory)
        if not head:
            return x
        tied = getattr(c, "tie_word_embeddings", False)
        return ops.linear(x, c.head_name, "lm_head", n_classes, tied_to=table if tied else None)

    def source(c) -> Data:
        """The encoder's output."""
        return parts.source_states(c.d_model)

    def vocabulary(c) -> tuple[ops.Size, ops.Size]:
        """Rows of the token embedding and of the LM head."""
        return c.vocab_size, c.vocab_size

    def check(c) -> None:
        sizes.check_heads_fill(c)


class TiedDecoder(UntiedDecoder):
    tie_word_embeddings: sizes.Flag = sizes.hf()
