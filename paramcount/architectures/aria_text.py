"""The language model of Aria: Llama's attention, a mixture of experts beside two shared ones in every layer."""

from paramcount.declare import Data, ops, parts, sizes


class AriaText(parts.AttentionBias, parts.MixtureDecoder):
    """Source: arXiv:2410.05993; AriaTextDecoderLayer and AriaTextMoELayer of the reference."""

    reference = "AriaTextForCausalLM"
    modules = {".experts.fc1": (".experts.gate_up_proj",), ".experts.fc2": (".experts.down_proj",)}
    conditions = (sizes.padding_in_table(2),)

    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)
    n_routed_experts: sizes.Positive = sizes.hf("moe_num_experts")
    n_active_experts: sizes.Natural = sizes.hf("moe_topk")
    n_shared_experts: sizes.Natural = sizes.hf("moe_num_shared_experts")
    mlp_bias: sizes.Flag = sizes.hf()

    check = sizes.check_heads_divide

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        h = c.norm(x, "post_attention_layernorm")
        return x + (c.moe(h) + parts.shared_experts(c, h, "mlp.", bias=c.mlp_bias))

    def moe(c, x: Data) -> Data:
        """All experts of a layer are stored as one tensor for each projection, [experts, in, out]."""
        logits = ops.linear(x, "mlp.router", "router", c.n_routed_experts)  # [n, experts]
        scores = ops.softmax_of_top(logits, c.n_active_experts)  # [n, experts], 0 if not chosen
        return ops.experts(
            x, scores, "mlp.experts.", c.n_routed_experts, c.n_active_experts, c.expert, stored="stacked"
        )

    def expert(c, x: Data) -> Data:
        """Always with SiLU; the shared experts follow hidden_act."""
        gate, up = ops.fused(x, "fc1", {"experts.gate": c.d_expert, "experts.up": c.d_expert}, transposed=True)
        return ops.fused(ops.activate(gate, "silu") * up, "fc2", {"experts.down": c.d_model}, transposed=True)[0]
