"""The usual decoder: token embedding, layers, last norm, LM head."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar, Literal, TypeAlias

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

Kinds: TypeAlias = Iterable[tuple[Hashable, ops.Size]]  # ((kind, number of layers), ...) in order


class Decoder(sizes.Sizes):
    """A decoder-only language model. A subclass adds its fields and `layer`; the other methods are the usual ones."""

    prefix: ClassVar[str] = "model."
    head_name: ClassVar[str] = "lm_head"
    norms_heads: ClassVar[bool | Literal["wide"]] = False  # whether q and k have norms: of each head, or of all
    o_name: ClassVar[str] = "o_proj"  # of the output projection
    names: ClassVar[tuple[str, str, str]] = ("embed_tokens", "layers", "norm")  # of the embedding, layers and last norm
    layer: ClassVar[Callable[..., Data]]  # (x) or (x, kind) to x, [n, d_model]: one layer

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf(usual=False)

    activation: ClassVar = sizes.setting("hidden_act", usual="silu")
    norm_eps: ClassVar = sizes.setting("rms_norm_eps", usual=1e-6)
    rope: ClassVar = sizes.unchecked(sizes.rotary())
    attention_scale: ClassVar[Any] = None  # of the scores: 1 / √d_head

    def forward(c, tokens: Data) -> Data:
        return c.decode(c.to_first_layer(c.embed(tokens), tokens))

    def decode(c, x: Data) -> Data:
        """Embedded tokens [n, d_model] to logits [n, vocab_size]."""
        return c.head(c.transform(x))

    def transform(c, x: Data, *reads: Data) -> Data:
        """Embedded tokens through the layers and the last norm. `reads`: what every layer reads besides x."""
        kinds, name = c.kinds(), f"{c.prefix}{c.names[1]}.{{layer}}."
        carry = c.carry()
        if kinds is None:
            x = ops.layers(x, name, [("layer", c.n_layers)], lambda kind, *x: c.layer(*x), reads=reads, carry=carry)
        else:
            x = ops.layers(x, name, kinds, lambda kind, *x: c.layer(*x, kind), reads=reads, carry=carry)
        return c.last(x)

    def embed(c, tokens: Data) -> Data:
        """Token ids [n] to vectors [n, d_model]."""
        return ops.lookup(tokens, f"{c.prefix}{c.names[0]}.weight", "embedding", c.vocab_size, c.d_model)

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        """Embedded tokens to what the first layer reads, if positions or a scale also apply to an image among them."""
        return x

    def kinds(c) -> Kinds | None:
        """The kinds of layers; None if all are alike."""
        return None

    def carry(c) -> tuple[ops.Width, ...]:
        """Sizes of what each layer passes to the next besides x, such as keys and values."""
        return ()

    def last(c, x: Data) -> Data:
        """The last layer's output to what the LM head reads."""
        return c.norm(x, c.prefix + c.names[2])

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps)

    def self_attention(
        c: Any,
        x: Data,
        prefix: str = "self_attn.",
        *,
        bias: bool = False,
        o_bias: bool | None = None,
        window: ops.Size | None = None,
        prepare: parts.Prepare | None = None,
        mix: parts.Mix | None = None,
    ) -> Data:
        """Attention with the usual projections.

        `o_bias`: as `bias` unless given. `prepare`: what q and k go through before they meet; default: `c.prepare`.
        `mix`: q, k and v to attended values; default: `c.mix_heads`, in the `window`.
        """
        q, k, v = c.project_heads(x, prefix, bias=bias)  # [n, heads, d_head]
        q, k = (prepare or c.prepare)(q, k)
        a = mix(q, k, v) if mix else c.mix_heads(q, k, v, window)
        a, name = c.gate_heads(x, a), prefix + c.o_name  # [n, n_heads, d_head]
        return parts.project_output(a, name, x.shape[-1], bias=bias if o_bias is None else o_bias)

    def project_heads(c, x: Data, prefix: str, *, bias: bool) -> parts.Projections:
        """q [n, n_heads, d_head], k and v [n, n_kv_heads, d_head]."""
        return parts.project_heads(c, x, prefix, bias=bias)

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        """What q and k go through before they meet: norms, if there are any, and the rotation."""
        return c.turn_heads(*c.normalise_heads(q, k))

    def prepare_by(c, rotate: Callable[[Data], Data] | bool) -> parts.Prepare:
        """`prepare` with another rotation, or none."""
        if isinstance(rotate, bool):
            return c.prepare if rotate else c.normalise_heads
        return lambda q, k: parts.turn_with(rotate)(*c.normalise_heads(q, k))

    def normalise_heads(c, q: Data, k: Data) -> tuple[Data, Data]:
        """The norms of q and k, if there are any."""
        if c.norms_heads == "wide":
            return parts.normalise_wide(c, q, k)
        return parts.normalise_heads(c, q, k) if c.norms_heads else (q, k)

    def turn_heads(c, q: Data, k: Data) -> tuple[Data, Data]:
        """The rotation of q and k."""
        return c.rotate(q), c.rotate(k)

    def rotate(c, x: Data) -> Data:
        return ops.rope(x, c.rope)

    def mix_heads(c, q: Data, k: Data, v: Data, window: ops.Size | None) -> Data:
        """Causal attention: [n, n_heads, d_head]."""
        return ops.attend_causally(q, k, v, window=window, scale=c.attention_scale)  # [n, n_heads, d_head]

    def gate_heads(c, x: Data, a: Data) -> Data:
        """Attended values [n, n_heads, d_head], gated by x."""
        return a

    def gated_mlp(
        c: Any, x: Data, prefix: str = "mlp.", *, bias: bool = False, names: tuple[str, str, str] = parts.GATED
    ) -> Data:
        """The dense MLP of a layer. `names`: of gate, up and down."""
        return parts.gated_mlp(x, prefix, "mlp", c.d_ff, activation=c.activation, bias=bias, names=names)

    def head(c, x: Data) -> Data:
        """Hidden states to logits, through the token embedding if it is tied."""
        return parts.head(c, x, f"{c.prefix}{c.names[0]}.weight", c.head_name)


class AttentionDecoder(Decoder):
    """A decoder whose attention and MLP have the usual sizes."""

    is_section_type = True
    rotated: ClassVar[str | None] = "d_head"

    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf(usual=sizes.equal_to("n_heads"), null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.hf(usual=sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()

    rope: ClassVar = sizes.rotary()


class EqualHeads(Decoder):
    """A decoder whose heads share d_model."""

    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)

    check = sizes.check_heads_fill


class AttentionBias(Decoder):
    """A decoder whose config says whether attention has biases."""

    attention_bias: sizes.Flag = sizes.hf()


class PartlyRotated(AttentionDecoder):
    """A decoder that rotates the first d_rope values of each head."""

    rotated: ClassVar[str | None] = None

    d_rope: sizes.Natural = sizes.derived(sizes.rotary_dimension(0.5))

    def rotate(c, x: Data) -> Data:
        return parts.partial_rope(x, c.d_rope, c.rope)

    def check(c) -> None:
        sizes.check_at_most(c, "d_rope", "d_head")


class SlidingLayers(Decoder):
    """A decoder some of whose layers look back over a window."""

    window: sizes.Positive | None = sizes.hf()
    layer_types: sizes.Words = sizes.hf()

    kinds = parts.layers_by_type
    check = sizes.check_sliding_or_full
