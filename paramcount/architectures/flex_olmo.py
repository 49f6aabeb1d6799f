"""FlexOlmo: experts trained apart from each other in the layers of OLMo 2, with norms behind attention and experts."""

from paramcount.declare import Data, parts, sizes


class FlexOlmo(parts.AttentionBias, parts.SoftmaxExperts, parts.MixtureDecoder):
    """Source: arXiv:2507.07024; FlexOlmoDecoderLayer of the reference."""

    reference = "FlexOlmoForCausalLM"
    adapts_experts = True
    conditions = (sizes.padding_in_table(100277),)

    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "num_experts")

    norms_heads = "wide"

    def layer(c, x: Data) -> Data:
        a = c.self_attention(x, bias=c.attention_bias)
        x = x + c.norm(a, "post_attention_layernorm")
        return x + c.norm(parts.mixture(c, x, "mlp.", choose=c.choose), "post_feedforward_layernorm")
