"""Encoders of the BERT kind: summed embeddings, layers, the masked language model's head, a pooler for classifiers.

Source: arXiv:1810.04805, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

BERT = ("self.query", "self.key", "self.value", "output.dense")  # matrices of an attention
BERT_HEAD = (
    "cls.predictions.transform.dense",
    "cls.predictions.transform.LayerNorm",
    "cls.predictions.decoder",
    "cls.predictions.bias",
)
ROBERTA_HEAD = ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias")

Turn = Callable[[Data, Data, Data], tuple[Data, Data, Data]]


def embed_tokens(c: Any, tokens: Data, segments: Data | None, width: ops.Size, *, has_positions: bool = True) -> Data:
    """The sum of the embeddings of tokens, their segments and their positions."""
    names = c.prefix + "embeddings."
    x = ops.lookup(tokens, names + "word_embeddings.weight", "embedding", c.vocab_size, width)
    if segments is not None:
        x = x + ops.lookup(segments, names + "token_type_embeddings.weight", "other_embedding", c.n_token_types, width)
    if has_positions:
        name, first = names + "position_embeddings.weight", c.first_position
        x = x + ops.lookup_position(tokens, name, c.n_positions, width, offset=first)
    return x


def bert_attention(
    c: Any,
    x: Data,
    prefix: str = "attention.",
    memory: Data | None = None,
    *,
    bias: bool = True,
    turn: Turn | None = None,
) -> Data:
    """Multi-head attention; an encoder has no later tokens to cache keys and values for.

    `bias`: of q, k and v. `turn`: what they go through before they meet.
    """
    mix = None if memory is not None else parts.causally_if(getattr(c, "causal", True))
    return parts.multi_head(c, x, prefix, BERT, memory=memory, bias=(bias, bias, bias, True), turn=turn, mix=mix)


def rotary_attention(
    c: Any,
    x: Data,
    names: tuple[str, str],
    *,
    bias: bool = False,
    window: ops.Size | None = None,
    angles: ops.Rope | ops.Unknown | None = None,
) -> Data:
    """Multi-head attention of an encoder with rotary positions, q, k and v out of one matrix.

    `names`: of that matrix and of the output's. `angles`: if they are not those of c.
    """
    q, k, v = parts.fused_qkv(c, x, names[0], bias=bias)  # [n, n_heads, d_head]
    q, k = ops.rope(q, angles or c.rope), ops.rope(k, angles or c.rope)
    a = ops.attend(q, k, v, mask=None if window is None else ops.Window(window + 1, window))  # [n, n_heads, d_head]
    return ops.linear(a, names[1], "output_projection", x.shape[-1], bias=bias)


def bert_mlp(c: Any, x: Data) -> Data:
    return parts.plain_mlp(x, ("intermediate.dense", "output.dense"), "mlp", c.d_ff, activation=c.activation, bias=True)


def post_norm_layer(c: Any, x: Data, *memory: Data, bias: bool = True, turn: Turn | None = None) -> Data:
    """Norms after attention and MLP. `memory`: another encoder's output. `bias`, `turn`: see `bert_attention`."""
    x = c.norm(x + bert_attention(c, x, bias=bias, turn=turn), "attention.output.LayerNorm")

    def look(x: Data, memory: Data) -> Data:
        return ops.layer_norm(x + bert_attention(c, x, "", memory, bias=bias), "output.LayerNorm", c.norm_eps)

    for source in memory:
        x = parts.crossing(x, "crossattention.", look, source)
    return ops.layer_norm(x + bert_mlp(c, x), "output.LayerNorm", c.norm_eps)


def pre_norm_layer(c: Any, x: Data, memory: Sequence[Data], norms: tuple[str, str]) -> Data:
    """Norms of these names before attention and MLP."""
    x = x + bert_attention(c, c.norm(x, "attention." + norms[0]))
    for source in memory:
        x = parts.crossing(x, "crossattention.", lambda x, m: x + bert_attention(c, c.norm(x, norms[0]), "", m), source)
    return x + bert_mlp(c, c.norm(x, norms[1]))


def masked_head(
    c: Any, x: Data, names: tuple[str, str, str, str], width: ops.Size, activation: str | ops.Unknown
) -> Data:
    """Hidden states to logits: matrix, activation, norm, then the token embedding or an LM head of its own.

    `names`: of matrix, norm, LM head and the bias of a tied one. `width`: of the vectors that the LM head reads.
    """
    h = c.norm(ops.activate(ops.linear(x, names[0], "other", width, bias=True), activation), names[1])
    table = c.prefix + "embeddings.word_embeddings.weight" if getattr(c, "tie_word_embeddings", False) else None
    return parts.biased_head(h, c.vocab_size, names[2], names[3], table)


class EncoderFlow(parts.Headed):
    """The forward pass of an encoder with the head of a masked language model, without fields."""

    prefix: ClassVar[str] = "bert."
    layers_name: ClassVar[str] = "encoder.layer"
    pooler: ClassVar[str] = "pooler.dense"
    last_norm: ClassVar[str] = ""  # after the last layer, if norms come first
    has_positions: ClassVar[bool] = True  # whether they are looked up
    head_names: ClassVar[tuple[str, str, str, str]] = BERT_HEAD  # see `masked_head`
    head_activation: ClassVar[str | None] = None  # that of the layers
    reads_source: ClassVar[bool] = True  # whether it can be the encoder of a pair
    layer: ClassVar[Callable[..., Data]] = post_norm_layer  # (x, *share, *memory) to x, [n, d_model]: one layer

    activation: ClassVar = sizes.setting("hidden_act", usual="gelu")
    norm_eps: ClassVar = sizes.setting("layer_norm_eps", usual=1e-12)
    first_position: ClassVar = 0
    if TYPE_CHECKING:  # fields of the subclasses
        vocab_size: sizes.Positive
        d_model: sizes.Positive
        n_layers: sizes.Natural

    def count_unused_positions(c) -> int:
        return c.first_position if isinstance(c.first_position, int) else 0

    @property
    def causal(c) -> bool:
        """Whether tokens see no later ones."""
        return False

    def forward(c, tokens: Data, head: bool = True) -> Data:
        """Token ids to logits, or without `head` to hidden states."""
        return c.read(tokens, c.list_inputs(tokens), c.memory(), head=head)

    def read(c, tokens: Data, inputs: Sequence[Data], memory: Sequence[Data], *, head: bool) -> Data:
        """The same, with what is looked up besides the tokens and another encoder's output, if layers attend to it."""
        n = len(inputs)

        def build(tokens: Data, *reads: Data) -> Data:
            x = c.encode(c.embed(tokens, *reads[:n]), *c.share(tokens, *reads[:n]), *reads[n:])
            return c.head(x) if head else x

        return ops.block(tokens, "", build, reads=(*inputs, *memory), part="decoder" if c.causal else "encoder")

    def list_inputs(c, tokens: Data, whose: str = "") -> list[Data]:
        """What is looked up besides the tokens. `whose`: begins the names."""
        return [ops.given(whose + name, *tokens.shape, default=default) for name, default in c.inputs().items()]

    def inputs(c) -> Mapping[str, int | ops.Unknown | None]:
        """{what is looked up besides the tokens: its value if it is not given}."""
        return {"segments": 0} if "n_token_types" in type(c).fields and getattr(c, "has_segments", True) else {}

    def memory(c) -> tuple[Data, ...]:
        """The output of another encoder, if layers attend to it."""
        return ()

    def embed(c, tokens: Data, *reads: Data) -> Data:
        """Token ids and further inputs to vectors [n, d_model]."""
        segments = reads[0] if reads else None
        x = embed_tokens(c, tokens, segments, c.width(), has_positions=c.has_positions)
        return c.norm(x, c.prefix + "embeddings.LayerNorm")

    def width(c) -> ops.Size:
        """Of the vectors that are looked up, and of those that the LM head reads."""
        return c.d_model

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        """What every layer reads besides x."""
        return ()

    def encode(c, x: Data, *memory: Data) -> Data:
        """Embedded tokens to hidden states, pooled ones beside them if a class needs them."""
        name = f"{c.prefix}{c.layers_name}.{{layer}}."
        x = ops.layers(x, name, c.kinds(), c.layer_of, reads=memory)
        if c.last_norm:
            x = c.norm(x, c.prefix + c.last_norm)
        return parts.first_pooled(x, c.prefix + c.pooler) if getattr(c, "pooled", False) else x

    def kinds(c) -> list[tuple[Hashable, ops.Size]]:
        """(kind, number) of the layers, in order."""
        return [("layer", c.n_layers)]

    def layer_of(c, kind: Any, x: Data, *memory: Data) -> Data:
        """A layer of a kind."""
        return c.layer(x, *memory)

    def norm(c, x: Data, name: str) -> Data:
        return ops.layer_norm(x, name, c.norm_eps)

    def head(c, x: Data) -> Data:
        return masked_head(c, x, c.head_names, c.width(), c.head_activation or c.activation)


class PositionlessEncoder(EncoderFlow):
    """An encoder without learned positions, whose tokens see all others. A subclass adds its prefix, fields and
    `layer`.
    """

    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_inside(0),)

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()

    def check(c) -> None:
        sizes.check_heads_fill(c)


class MaskedEncoder(PositionlessEncoder):
    """With learned positions."""

    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        is_tied_or_not = "tie_word_embeddings" in type(c).fields
        return parts.second_bias(c, tokens, c.head_names[3]) if is_tied_or_not and c.head_names[3] else ()


class LikeRoberta(EncoderFlow):
    """Positions are numbered from behind the padding token, and the LM head has RoBERTa's names."""

    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_inside(1, places=2),)
    head_names = ROBERTA_HEAD
    head_activation = "gelu"

    first_position = parts.first_after_padding(1)


class NarrowEncoder(MaskedEncoder):
    """With embeddings that may be narrower than the layers; what the LM head reads is as narrow."""

    d_embedding: sizes.Positive = sizes.hf()
    embeddings_projected: sizes.Flag = sizes.derived(lambda js, c: c["d_embedding"] != c["d_model"])
    n_token_types: sizes.Positive = sizes.hf()

    def width(c) -> ops.Size:
        return c.d_embedding

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = super().embed(tokens, *reads)
        name = c.prefix + "embeddings_project"
        return ops.linear(x, name, "other", c.d_model, bias=True) if c.embeddings_projected else x

    def check(c) -> None:
        super().check()
        sizes.check_projection(c)


class OffsetEncoder(MaskedEncoder):
    """BERT's layers, each with an attention of its own, `attention`; two rows of the position embedding stand before
    that of the first token. Nothing is pooled. A subclass adds its prefix and `attention`.
    """

    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_inside(1),)

    n_token_types: sizes.Positive = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def embed(c, tokens: Data, *reads: Data) -> Data:
        names = c.prefix + "embeddings."
        x = embed_tokens(c, tokens, reads[0], c.d_model, has_positions=False)
        return c.norm(x + c.positions(tokens), names + "LayerNorm")

    def positions(c, tokens: Data) -> Data:
        name, rows = c.prefix + "embeddings.position_embeddings.weight", c.n_positions + 2
        return ops.lookup_position(tokens, name, rows, c.d_model, offset=2)

    def layer(c, x: Data, *memory: Data) -> Data:
        x = c.norm(x + c.self_attention(x), "attention.output.LayerNorm")
        return c.norm(x + bert_mlp(c, x), "output.LayerNorm")

    def self_attention(c, x: Data) -> Data:
        heads, names = (c.n_heads, c.d_head), ["attention." + name for name in BERT]
        q, k, v = (ops.linear(x, name, f"qkv.{part}", heads, bias=True) for name, part in zip(names, "qkv"))
        return ops.linear(c.attention(q, k, v), names[3], "output_projection", c.d_model, bias=True)

    def attention(c, q: Data, k: Data, v: Data) -> Data:
        """[n, heads, d_head] to the same."""
        raise NotImplementedError


class Encoder(MaskedEncoder):
    """With is_decoder its tokens see no later ones, and it may attend to another encoder's output."""

    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.memory_needs_a_decoder, sizes.padding_inside(0))

    is_decoder: sizes.Flag = sizes.hf()
    cross_attention: sizes.Flag = sizes.hf()

    @property
    def causal(c) -> bool:
        return c.is_decoder

    def memory(c) -> tuple[Data, ...]:
        return (parts.source_states(c.d_model),) if c.cross_attention else ()
