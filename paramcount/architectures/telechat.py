"""TeleChat and TeleChat2: Llama's layers, keys and values in one matrix, biases on the outputs of attention and MLP."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, activate, attend, fused, linear, norm, rope
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import GATED
from paramcount.sizes import ABSENT, Flag, Positive, Sizes, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.rules import check_heads_fill


class TeleChat(Sizes):
    """TeleChat too: its code differs only in ignoring num_key_value_heads, which its configs lack.

    Source: arXiv:2401.03804; configuration_telechat.py and modeling_telechat.py of Tele-AI/TeleChat2-115B.
    """

    reference: ClassVar[str] = "TelechatForCausalLM of Tele-AI/TeleChat2-115B"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("TeleChatForCausalLM",)
    base_model: ClassVar[str | None] = "TelechatModel"
    rotated: ClassVar[str | None] = "d_head"

    vocab_size: Positive = hf(absent=160256)
    d_model: Positive = hf("n_embed", "hidden_size", absent=4096, null=ABSENT)
    n_layers: Positive = hf("num_hidden_layers", "n_layer", absent=30)
    n_heads: Positive = hf("num_attention_heads", "n_head", absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("ffn_hidden_size", absent=12288)
    embedding_norm: Flag = hf("embed_layernorm", absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        names = ("word_embeddings", "h", "ln_f")
        enter = (lambda x: norm(x, "transformer.word_embeddings_layernorm")) if c.embedding_norm else None
        return decoder(c, tokens, layer, prefix="transformer.", names=names, enter=enter)

    def check(c) -> None:
        check_heads_fill(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(x, lambda h: attention(c, h), lambda h: mlp(c, h))


def attention(c: Any, x: Data) -> Data:
    q = linear(x, "self_attention.query", "qkv.q", (c.n_heads, c.d_head))
    k, v = fused(x, "self_attention.key_value", dict.fromkeys(("qkv.k", "qkv.v"), (c.n_kv_heads, c.d_head)))
    return linear(attend(rope(q), rope(k), v), "self_attention.dense", "output_projection", c.d_model, bias=True)


def mlp(c: Any, x: Data) -> Data:
    gate, up, down = (f"mlp.{name}" for name in GATED)
    h = activate(linear(x, gate, "mlp.gate", c.d_ff), "silu") * linear(x, up, "mlp.up", c.d_ff)
    return linear(h, down, "mlp.down", c.d_model, bias=True)
