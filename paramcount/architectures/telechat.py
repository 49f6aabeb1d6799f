"""TeleChat and TeleChat2: Llama's layers, keys and values in one matrix, biases on the outputs of attention and MLP."""

from collections.abc import Mapping
from math import ceil, log2
from typing import Any

from paramcount.declare import Data, ops, parts, sizes


def read_rope(config: Mapping[str, Any], c: Any) -> ops.Rope:
    """For texts up to training_seqlen; beyond it, the base and the magnitude grow with the text."""
    length = config.get("training_seqlen", 8192) / config.get("base_seqlen", 8192)
    alpha = max(2 ** ceil(log2(length) + 1) - 1, 1)
    return ops.Rope(10_000.0 * alpha ** (c.d_head / (c.d_head - 2)))


class TeleChat(parts.EqualHeads, parts.AttentionDecoder):
    """TeleChat too: its code differs only in ignoring num_key_value_heads, which its configs lack.

    Source: arXiv:2401.03804; configuration_telechat.py and modeling_telechat.py of Tele-AI/TeleChat2-115B.
    """

    reference = "TelechatForCausalLM of Tele-AI/TeleChat2-115B"
    equivalent_classes = ("TeleChatForCausalLM",)
    base_model = "TelechatModel"

    prefix = "transformer."
    names = ("word_embeddings", "h", "ln_f")
    defaults = {"vocab_size": 160256}

    d_model: sizes.Positive = sizes.hf("n_embed", "hidden_size", absent=4096, null=sizes.ABSENT)
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layer", absent=30)
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_head", absent=32)
    d_ff: sizes.Natural = sizes.hf("ffn_hidden_size", absent=12288)
    embedding_norm: sizes.Flag = sizes.hf("embed_layernorm", absent=False)
    tie_word_embeddings: sizes.Flag = sizes.hf(absent=True)

    norm_eps = sizes.setting("layer_norm_epsilon", default=1e-5)
    rope = sizes.setting(default=read_rope)

    def embed(c, tokens: Data) -> Data:
        x = super().embed(tokens)
        return c.norm(x, "transformer.word_embeddings_layernorm") if c.embedding_norm else x

    def layer(c, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "input_layernorm"), "self_attention.")
        return x + c.mlp(c.norm(x, "post_attention_layernorm"))

    def attention(c, x: Data, prefix: str) -> Data:
        """Keys and values are stored head by head."""
        q = ops.linear(x, prefix + "query", "qkv.q", (c.n_heads, c.d_head))  # [n, n_heads, d_head]
        halves = dict.fromkeys(("qkv.k", "qkv.v"), (c.n_kv_heads, c.d_head))
        k, v = ops.fused(x, prefix + "key_value", halves, groups=c.n_kv_heads)
        a = ops.attend_causally(ops.rope(q, c.rope), ops.rope(k, c.rope), v)  # [n, n_heads, d_head]
        return ops.linear(a, prefix + "dense", "output_projection", c.d_model, bias=True)

    def mlp(c, x: Data) -> Data:
        gate, up, down = (f"mlp.{name}" for name in parts.GATED)
        h = ops.activate(ops.linear(x, gate, "mlp.gate", c.d_ff), "silu") * ops.linear(x, up, "mlp.up", c.d_ff)
        return ops.linear(h, down, "mlp.down", c.d_model, bias=True)
