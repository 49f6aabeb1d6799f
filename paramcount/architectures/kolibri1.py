"""Kolibri-1: 384 small experts and a shared one, pre-norm and post-norm.

Four of five layers attend to a sliding window; the others have no positions.
"""

from paramcount.declare import Data, ops, parts, sizes


class Kolibri1(parts.SlidingLayers, parts.RoutedExperts, parts.AttentionDecoder):
    """Source: Kolibri1DecoderLayer and Kolibri1TopKRouter of the reference, modeling_kolibri1.py."""

    reference = "Kolibri1ForCausalLM"
    d_ff = sizes.constant(None)
    conditions = (sizes.padding_in_table(None),)
    defaults = {"d_head": 128}

    layer_types: sizes.Words = sizes.hf(absent=sizes.full_every(5), null=sizes.ABSENT)
    window: sizes.Positive = sizes.hf()
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "num_experts")
    d_shared_expert: sizes.Natural = sizes.hf("shared_expert_intermediate_size")

    norm_topk_prob = sizes.setting("norm_topk_prob")
    norms_heads = True

    def layer(c, x: Data, kind: str) -> Data:
        sliding = kind == sizes.SLIDING[0]
        window = c.window if sliding else None
        h = c.norm(x, "input_layernorm")
        x = x + c.norm(c.self_attention(h, prepare=c.prepare_by(sliding), window=window), "post_attn_norm")
        h = c.norm(x, "post_attention_layernorm")
        shared = parts.gated_mlp(h, "mlp.shared_experts.", "shared_experts", c.d_shared_expert, activation=c.activation)
        return x + c.norm(parts.mixture(c, h, "mlp.", choose=c.choose) + shared, "post_ffn_norm")

    def choose(c, logits: Data) -> Data:
        """The routing bias is added to the logits."""
        merit = ops.add_routing_bias(logits, parts.routing_bias(c, "moe.router.expert_bias"))  # [n, experts]
        weights = ops.top_k(ops.activate(logits, "sigmoid"), c.n_active_experts, merit)  # 0 for those not chosen
        return ops.normalise_weights(weights, c.norm_topk_prob)
