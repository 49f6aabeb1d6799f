"""openPangu Ultra MoE: DeepSeek-V3's layers with norms on both sides of attention and MLP."""

from paramcount.declare import Data, ops, parts, sizes


class PanguUltraMoe(parts.LatentMixture):
    """Source: arXiv:2505.04519, section 2; OpenPanguDecoderLayer in openpangu.py of vLLM."""

    reference = "PanguUltraMoEForCausalLM of FreedomIntelligence/openPangu-Ultra-MoE-718B"
    is_section_type = False
    conditions = (sizes.latent_heads_stay_whole(None),)

    n_dense_layers: sizes.Natural = sizes.hf("first_k_dense_replace", at_most="n_layers")
    d_q_lora: sizes.Positive | None = sizes.hf(absent=None)
    n_routed_experts: sizes.Positive = sizes.hf("n_routed_experts")
    n_shared_experts: sizes.Natural = sizes.hf("n_shared_experts", null=0)
    expert_bias: sizes.Flag = sizes.hf("router_enable_expert_bias", absent=False)
    sandwich_norm: sizes.Flag = sizes.hf("sandwich_norm", absent=False)
    n_mtp_layers: sizes.Natural = sizes.hf("num_nextn_predict_layers", "num_mtp_layers", absent=0, null=0)
    attention_bias = sizes.constant(False)

    rope = sizes.rotary(10_000)
    kinds = parts.dense_first

    def layer(c, x: Data, kind: str) -> Data:
        if not c.sandwich_norm:
            return super().layer(x, kind)
        x = x + c.norm(c.attend(c.norm(x, "input_layernorm")), "post_attention_layernorm")
        h = c.norm(x, "pre_mlp_layernorm")
        return x + c.norm(c.moe(h) if kind == "moe" else c.mlp(h), "post_mlp_layernorm")

    def attend(c, x: Data) -> Data:
        """The norms of latents have the epsilon of the others."""
        prefix = "self_attn."
        latents = parts.cache_latents(c, x, prefix, eps=c.norm_eps)
        k, v = parts.expand_latents(c, latents, prefix)  # [m, n_heads, d_nope + d_rope] and [m, n_heads, d_v]
        q = parts.turn_queries(c, parts.queries(c, x, prefix, eps=c.norm_eps))  # [n, n_heads, d_nope + d_rope]
        a = ops.attend(q, k, v, mask=ops.Causal())  # [n, n_heads, d_v]
        return parts.project_output(a, prefix + "o_proj", c.d_model)

    def choose(c, logits: Data) -> Data:
        bias = parts.routing_bias(c, c.routing_bias, role="parameter") if c.expert_bias else None
        return parts.choose_in_groups(c, logits, bias)

    def mtp(c, tokens: Data) -> Data:
        return parts.next_token_layers(c, tokens, lambda x: c.layer(x, "moe"))
