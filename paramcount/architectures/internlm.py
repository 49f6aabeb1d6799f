"""InternLM 1: Llama's layers with a bias on q, k, v and the output projection."""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes


def dynamic_rope(config: Mapping[str, Any], c: Any) -> ops.Rope:
    """Source: configuration_internlm.py and InternLMDynamicNTKScalingRotaryEmbedding of internlm/internlm-7b."""
    parameters = config.get("rotary") or {}
    kind, base = parameters.get("type", "dynamic"), parameters.get("base", 10_000)
    if kind == "origin":
        return ops.Rope(base)
    n_positions = config.get("max_position_embeddings", 2048)
    return sizes.scale_evenly(base, kind, parameters.get("scaling_factor", 1.0), n_positions)


class InternLM(parts.EqualHeads, parts.Decoder):
    """Source: modeling_internlm.py of internlm/internlm-7b."""

    reference = "InternLMForCausalLM of internlm/internlm-7b"
    gguf = "llama"
    rotated = "d_head"
    defaults = {"vocab_size": 103168, "d_model": 4096, "n_layers": 32}

    n_heads: sizes.Positive = sizes.hf(absent=32)
    d_ff: sizes.Natural = sizes.hf(absent=11008)
    attention_bias: sizes.Flag = sizes.hf("bias", absent=True)

    rope = sizes.setting(default=dynamic_rope)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
