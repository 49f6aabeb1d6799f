"""CTRL: sinusoidal positions, norms first, biases everywhere, the tied head's too."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, activate, attend, linear
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import Flag, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.rules import check_heads_fill


class CTRL(Sizes):
    """Source: arXiv:1909.05858."""

    reference: ClassVar[str] = "CTRLLMHeadModel"

    vocab_size: Positive = hf(absent=246534)
    d_model: Positive = hf("hidden_size", "n_embd", absent=1280)
    n_layers: Positive = hf("num_hidden_layers", "n_layer", absent=48)
    n_heads: Positive = hf("num_attention_heads", "n_head", absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("dff", absent=8192)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        names = ("w", "h", "layernorm")
        return decoder(
            c,
            tokens,
            layer,
            prefix="transformer.",
            names=names,
            norm_bias=True,
            head_bias=True,
            enter=lambda x: activate(x, "add positions"),
        )

    def check(c) -> None:
        check_heads_fill(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(x, lambda h: attention(c, h), lambda h: feed_forward(c, h), ("layernorm1", "layernorm2"), bias=True)


def feed_forward(c: Any, x: Data) -> Data:
    return plain_mlp(x, ("ffn.0", "ffn.2"), "mlp", c.d_ff, activation="relu", bias=True)


def attention(c: Any, x: Data) -> Data:
    prefix = "multi_head_attention."
    q, k, v = (linear(x, f"{prefix}W{name}", f"qkv.{name}", (c.n_heads, c.d_head), bias=True) for name in "qkv")
    return linear(attend(q, k, v), prefix + "dense", "output_projection", c.d_model, bias=True)
