"""InternLM 1: Llama's layers with a bias on q, k, v and the output projection."""

from collections.abc import Mapping
from typing import Any

from paramcount.flow import Data, Rope
from paramcount.parts.decoder import Decoder
from paramcount.sizes import Flag, Natural, Positive, d_model_per_head, derived, hf, setting
from paramcount.sizes.rules import check_heads_fill


def dynamic_rope(config: Mapping[str, Any], c: Any) -> Rope:
    """Source: configuration_internlm.py and InternLMDynamicNTKScalingRotaryEmbedding of internlm/internlm-7b."""
    parameters = config.get("rotary") or {}
    kind, base = parameters.get("type", "dynamic"), parameters.get("base", 10_000)
    if kind == "origin":
        return Rope(base)
    return Rope(base, kind, parameters.get("scaling_factor", 1.0), 1.0, config.get("max_position_embeddings", 2048))


class InternLM(Decoder):
    """Source: modeling_internlm.py of internlm/internlm-7b."""

    reference = "InternLMForCausalLM of internlm/internlm-7b"
    gguf = "llama"
    rotated = "d_head"
    defaults = {"vocab_size": 103168, "d_model": 4096, "n_layers": 32}

    n_heads: Positive = hf(absent=32)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf(absent=11008)
    attention_bias: Flag = hf("bias", absent=True)
    tie_word_embeddings: Flag = hf(absent=False)

    rope = setting(default=dynamic_rope)
    check = check_heads_fill

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
