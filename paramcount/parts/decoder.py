"""The usual decoder: token embedding, layers, last norm, LM head."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar, TypeAlias

from paramcount.flow import Data, Size, Width, layers, lookup, rms_norm
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import head
from paramcount.parts.feed_forward import GATED, gated_mlp
from paramcount.sizes import Natural, Positive, Sizes, d_model_per_head, hf, rotary, setting
from paramcount.sizes.rotary_settings import unchecked

Kinds: TypeAlias = Iterable[tuple[Hashable, Size]]  # ((kind, number of layers), ...) in order


class Decoder(Sizes):
    """A decoder-only language model. A subclass adds its fields and `layer`; the other methods are the usual ones."""

    prefix: ClassVar[str] = "model."
    names: ClassVar[tuple[str, str, str]] = ("embed_tokens", "layers", "norm")  # of the embedding, layers and last norm
    layer: ClassVar[Callable[..., Data]]  # (x) or (x, kind) to x, [n, d_model]: one layer

    vocab_size: Positive = hf()
    d_model: Positive = hf()
    n_layers: Natural = hf()

    activation: ClassVar = setting("hidden_act", usual="silu")
    norm_eps: ClassVar = setting("rms_norm_eps", usual=1e-6)
    rope: ClassVar = unchecked(rotary())

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
            x = layers(x, name, [("layer", c.n_layers)], lambda kind, *x: c.layer(*x), reads=reads, carry=carry)
        else:
            x = layers(x, name, kinds, lambda kind, *x: c.layer(*x, kind), reads=reads, carry=carry)
        return c.last(x)

    def embed(c, tokens: Data) -> Data:
        """Token ids [n] to vectors [n, d_model]."""
        return lookup(tokens, f"{c.prefix}{c.names[0]}.weight", "embedding", c.vocab_size, c.d_model)

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        """Embedded tokens to what the first layer reads, if positions or a scale also apply to an image among them."""
        return x

    def kinds(c) -> Kinds | None:
        """The kinds of layers; None if all are alike."""
        return None

    def carry(c) -> tuple[Width, ...]:
        """Sizes of what each layer passes to the next besides x, such as keys and values."""
        return ()

    def last(c, x: Data) -> Data:
        """The last layer's output to what the LM head reads."""
        return c.norm(x, c.prefix + c.names[2])

    def norm(c, x: Data, name: str) -> Data:
        return rms_norm(x, name, c.norm_eps)

    def self_attention(c, x: Data, prefix: str = "self_attn.", **options: Any) -> Data:
        """Attention with the usual projections. `options`: those of `attention`."""
        return attention(c, x, prefix, **options)

    def gated_mlp(
        c: Any, x: Data, prefix: str = "mlp.", *, bias: bool = False, names: tuple[str, str, str] = GATED
    ) -> Data:
        """The dense MLP of a layer. `names`: of gate, up and down."""
        return gated_mlp(x, prefix, "mlp", c.d_ff, activation=c.activation, bias=bias, names=names)

    def head(c, x: Data) -> Data:
        """Hidden states to logits, through the token embedding if it is tied."""
        return head(c, x, f"{c.prefix}{c.names[0]}.weight")


class AttentionDecoder(Decoder):
    """A decoder whose attention has the usual sizes."""

    n_heads: Positive = hf()
    n_kv_heads: Positive = hf()
    d_head: Positive = hf(absent=d_model_per_head)

    rope: ClassVar = rotary()
