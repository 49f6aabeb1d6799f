"""Gemma: Llama's layout with a GELU gate, heads wider than d_model shared out, and a tied head."""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes


def with_tanh(config: Mapping[str, Any], c: Any) -> str:
    """The first files say "gelu" for its approximation with tanh. Source: configuration_gemma.py of the reference."""
    name = str(config.get("hidden_act", "gelu"))
    return "gelu_pytorch_tanh" if name == "gelu" else name


class Gemma(parts.AttentionBias, parts.AttentionDecoder):
    """Source: arXiv:2403.08295, section 2; norms and embeddings modeling_gemma.py of the reference.

    With use_bidirectional_attention, the tokens of a prompt attend to all of it, as in GemmaAttention with the
    reference's default implementation of attention.
    """

    reference = "GemmaForCausalLM"
    gguf = "gemma"
    task_heads = "GENERIC"
    conditions = (sizes.padding_in_table(0),)
    defaults = {"d_head": 256}

    activation = sizes.setting(default=with_tanh)
    is_causal = sizes.setting(
        "is_causal", default=lambda config, c: config.get("use_bidirectional_attention") is not True
    )

    def embed(c, tokens: Data) -> Data:
        return enlarge(super().embed(tokens))

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        return x + gelu_mlp(c, c.norm(x, "post_attention_layernorm"))

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps, offset=1.0)


def enlarge(x: Data) -> Data:
    """Token embeddings times the square root of their size."""
    return ops.scale_by_root(x, x.shape[-1])


def gelu_mlp(c: Any, x: Data) -> Data:
    return parts.gated_mlp(x, "mlp.", "mlp", c.d_ff, activation=c.activation)
