"""OLMo: the Llama layout with LayerNorms that have no parameters.

Queries, keys and values are clipped if the config sets clip_qkv.
"""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes


class Olmo(parts.AttentionBias, parts.AttentionDecoder):
    """Source: arXiv:2402.00838, section 2.1."""

    reference = "OlmoForCausalLM"
    gguf = "olmo"
    task_heads = "SCORED"
    linear_by_component = False
    conditions = (sizes.padding_in_table(1),)

    norm_eps: ClassVar[float] = 1e-5
    clip_qkv = sizes.setting("clip_qkv", default=None)

    def layer(c, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "input_layernorm"))
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def attention(c, x: Data) -> Data:
        """Queries, keys and values are clipped if the config sets clip_qkv."""
        q, k, v = parts.project_heads(c, x, "self_attn.", bias=c.attention_bias)  # [n, n_heads, d_head]
        if isinstance(c.clip_qkv, (int, float)):
            q, k, v = (ops.clip(y, -c.clip_qkv, c.clip_qkv) for y in (q, k, v))
        a = ops.attend_causally(ops.rope(q, c.rope), ops.rope(k, c.rope), v)  # [n, n_heads, d_head]
        return parts.project_output(a, "self_attn.o_proj", c.d_model, bias=c.attention_bias)

    def norm(c, x: Data, name: str) -> Data:
        return ops.plain_norm(x, "layer", c.norm_eps)
