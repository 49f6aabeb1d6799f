"""LFM3: LFM2 with sliding windows in half of the attention layers, a gate per head and a post-norm per sublayer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.lfm2 import mlp
from paramcount.errors import ParamcountError
from paramcount.flow import Data, activate, linear
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder, pre_norm, sandwich
from paramcount.parts.state_space import short_convolution
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, Words, hf, per_layer
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_layer_types

KINDS = ("conv", "full_attention", "sliding_attention", "attention")  # the last is the older word for the second


def kinds(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        "full_attention" if i % 4 == 2 else "sliding_attention" if i and i % 4 == 0 else "conv" for i in per_layer(c)
    )


class Lfm3(Sizes):
    """Source: modeling_lfm3.py of the reference."""

    reference: ClassVar[str] = "Lfm3ForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(124893),)

    vocab_size: Positive = hf(absent=128000)
    d_model: Positive = hf(absent=2048)
    n_layers: Positive = hf(absent=24)
    layer_types: Words = hf(absent=kinds, null=ABSENT)
    n_heads: Positive = hf(absent=16)
    n_kv_heads: Positive = hf(absent=4)
    d_head: Positive = hf(absent=128)
    window: Positive | None = hf(absent=256)
    d_conv: Positive = hf("conv_L_cache", absent=7)
    mixer_bias: Flag = hf("conv_bias", absent=False)
    attention_gate: Flag = hf("use_attention_gate", absent=True)
    attention_bias: Flag = hf(absent=False)
    norms_behind: Flag = hf("use_sandwich_norm", absent=True)
    d_ff: Positive = hf(absent=7680)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(
            c, tokens, layer, [(word, 1) for word in c.layer_types], names=("embed_tokens", "layers", "embedding_norm")
        )

    def unused_fields(c) -> tuple[str, ...]:
        return () if set(c.layer_types) - {"conv"} else ("n_kv_heads", "d_head")

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)
        if c.window is None and "sliding_attention" in c.layer_types:
            raise ParamcountError(
                "= null, but layers look back over one", where="window", expected="a positive integer"
            )


def layer(c: Any, word: str, x: Data) -> Data:
    def mixer(h: Data) -> Data:
        if word == "conv":
            return short_convolution(h, "conv.", c.d_conv, bias=c.mixer_bias)
        window = c.window if word == "sliding_attention" else None
        return attention(
            c,
            h,
            "self_attn.",
            bias=c.attention_bias,
            qk_norm=True,
            window=window,
            gate=gate if c.attention_gate else None,
        )

    if c.norms_behind:
        return sandwich(
            x, mixer, lambda h: mlp(c, h), ("operator_norm", "post_operator_norm", "ffn_norm", "post_ffn_norm")
        )
    return pre_norm(x, mixer, lambda h: mlp(c, h), ("operator_norm", "ffn_norm"))


def gate(x: Data, a: Data) -> Data:
    """One number for each head."""
    open_ = activate(linear(x, "self_attn.gate_proj", "qkv.gate", a.shape[1]), "sigmoid")
    return Data("scale heads", (a, open_), a.shape)
