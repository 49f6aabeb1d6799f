"""OLMoE: many small experts, a norm over all queries and one over all keys."""

from paramcount.declare import Data, ops, parts, sizes


class Olmoe(parts.AttentionBias, parts.SoftmaxExperts, parts.MixtureDecoder):
    """Source: arXiv:2409.02060, section 2; OlmoeAttention of the reference."""

    reference = "OlmoeForCausalLM"
    gguf = "olmoe"
    adapts_experts = True
    conditions = (sizes.padding_in_table(1),)

    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "num_experts")

    clip_qkv = sizes.setting("clip_qkv", default=None)
    check = sizes.check_heads_fill  # the norm of the queries is as wide as d_model

    def layer(c, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "input_layernorm"))
        return x + parts.mixture(c, c.norm(x, "post_attention_layernorm"), "mlp.", choose=c.choose)

    def attention(c, x: Data) -> Data:
        """Queries, keys and values are clipped if the config sets clip_qkv."""
        q, k, v = parts.project_heads(c, x, "self_attn.", bias=c.attention_bias)  # [n, n_heads, d_head]
        q, k = parts.normalise_wide(c, q, k)
        if isinstance(c.clip_qkv, (int, float)):
            q, k, v = (ops.clip(y, -c.clip_qkv, c.clip_qkv) for y in (q, k, v))
        a = ops.attend_causally(ops.rope(q, c.rope), ops.rope(k, c.rope), v)  # [n, n_heads, d_head]
        return parts.project_output(a, "self_attn.o_proj", c.d_model, bias=c.attention_bias)
