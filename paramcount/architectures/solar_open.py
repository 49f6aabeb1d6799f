"""Solar Open: routed experts and a shared one in every layer, q, k and v biased if wanted but never o."""

from paramcount.declare import Data, parts, sizes


class SolarOpen(parts.AttentionBias, parts.GroupedExperts, parts.AttentionDecoder):
    """Source: SolarOpenDecoderLayer and SolarOpenTopkRouter of the reference, modeling_solar_open.py."""

    reference = "SolarOpenForCausalLM"
    gguf = "glm4moe"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    d_ff = sizes.constant(None)
    conditions = (sizes.grouped_routing(1, 1), sizes.padding_in_table(None))
    defaults = {"d_head": 128}

    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "n_routed_experts")
    n_shared_experts: sizes.Natural = sizes.hf()

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias, o_bias=False)
        return x + parts.shared_mixture(c, c.norm(x, "post_attention_layernorm"), "mlp.", choose=c.choose)
