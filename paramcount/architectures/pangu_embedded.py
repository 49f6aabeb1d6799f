"""openPangu Embedded: Llama's layers with biases in attention."""

from paramcount.declare import Data, parts, sizes


def has_bias(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    return sizes.flag(js, "attention_bias", False) or sizes.flag(js, "bias", False)


class PanguEmbedded(parts.AttentionDecoder):
    """Source: arXiv:2505.22375, section 2; OpenPanguEmbeddedAttention in openpangu.py of vLLM."""

    reference = "PanguEmbeddedForCausalLM of FreedomIntelligence/openPangu-Embedded-7B"
    model_types = ("PanguEmbedded",)
    is_section_type = False

    o_bias: sizes.Flag = sizes.derived(has_bias)
    qkv_bias: sizes.Flag = sizes.hf("qkv_bias", absent=has_bias)
    mlp_bias: sizes.Flag = sizes.hf("mlp_bias", absent=False)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.qkv_bias, o_bias=c.o_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)
