"""The language model of Aria: Llama's attention, a mixture of experts beside two shared ones in every layer."""

from paramcount.flow import Data, activate, experts, fused, linear, route
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.feed_forward import shared_experts
from paramcount.sizes import ABSENT, Flag, Natural, Positive, d_model_per_head, equal_to, hf, rotary
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_divides


class AriaText(AttentionDecoder):
    """Source: arXiv:2410.05993; AriaTextDecoderLayer and AriaTextMoELayer of the reference."""

    reference = "AriaTextForCausalLM"
    is_section_type = True
    modules = {".experts.fc1": (".experts.gate_up_proj",), ".experts.fc2": (".experts.down_proj",)}
    rotated = "d_head"
    conditions = (padding_in_table(2),)

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_expert: Natural = hf("intermediate_size")
    n_routed_experts: Positive = hf("moe_num_experts")
    n_active_experts: Natural = hf("moe_topk")
    n_shared_experts: Natural = hf("moe_num_shared_experts")
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=2048)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        h = c.norm(x, "post_attention_layernorm")
        return x + (c.moe(h) + shared_experts(c, h, "mlp.", bias=c.mlp_bias))

    def moe(c, x: Data) -> Data:
        """All experts of a layer are stored as one tensor for each projection, [experts, in, out]."""
        scores = route(linear(x, "mlp.router", "router", c.n_routed_experts), c.n_active_experts, "softmax over chosen")
        return experts(x, scores, "mlp.experts.", c.n_routed_experts, c.n_active_experts, c.expert, stacked=True)

    def expert(c, x: Data) -> Data:
        """Always with SiLU; the shared experts follow hidden_act."""
        gate, up = fused(x, "fc1", {"experts.gate": c.d_expert, "experts.up": c.d_expert}, transposed=True)
        return fused(activate(gate, "silu") * up, "fc2", {"experts.down": c.d_model}, transposed=True)[0]

    def check(c) -> None:
        check_divides(c, "n_heads", "d_model")  # also where d_head is given: the reference asks it
