"""Solar Open: routed experts and a shared one in every layer, q, k and v biased if wanted but never o."""

from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.feed_forward import choose_in_groups, routing_bias, shared_mixture
from paramcount.sizes import Flag, Natural, Positive, hf, rotary, setting
from paramcount.sizes.conditions import grouped_routing, padding_in_table


class SolarOpen(AttentionDecoder):
    """Source: SolarOpenDecoderLayer and SolarOpenTopkRouter of the reference, modeling_solar_open.py."""

    reference = "SolarOpenForCausalLM"
    gguf = "glm4moe"
    is_section_type = True
    adapts_experts = True
    rotated = "d_head"
    conditions = (grouped_routing(1, 1), padding_in_table(None))
    defaults = {"d_head": 128}

    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_local_experts", "n_routed_experts")
    n_active_experts: Natural = hf()
    n_shared_experts: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(1_000_000, positions=131072)
    norm_topk_prob = setting("norm_topk_prob", default=True)
    routed_scale = setting("routed_scaling_factor", default=1.0)
    n_groups = setting("n_group", default=1)
    n_active_groups = setting("topk_group", default=1)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias, o_bias=False)
        return x + shared_mixture(c, c.norm(x, "post_attention_layernorm"), "mlp.", choose=c.choose)

    def choose(c, logits: Data) -> Data:
        return choose_in_groups(c, logits, routing_bias(c, "mlp.gate.e_score_correction_bias"))
