"""BitNet b1.58: the Llama layout with one norm more before each layer's two last matrices; its MLP squares a ReLU."""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def of_reference(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """flash-linear-attention has another BitNet with the same model type and other keys."""
    if "hidden_ratio" in js or "fuse_norm" in js:
        key = "hidden_ratio" if "hidden_ratio" in js else "fuse_norm"
        found = "is a key of flash-linear-attention's BitNet, which is not supported"
        raise ParamcountError(found, where=key, expected="a config.json of transformers' BitNet")


class BitNet(parts.AttentionBias, parts.AttentionDecoder):
    """Source: arXiv:2504.12285, section 2."""

    reference = "BitNetForCausalLM"
    gguf = "bitnet bitnet-b1.58"
    conditions = (sizes.padding_in_table(None), of_reference)
    check = sizes.check_heads_fill  # the norm of the attended values is as wide as d_model

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias)
        h = c.norm(x, "post_attention_layernorm")
        gated = ops.activate(ops.linear(h, "mlp.gate_proj", "mlp.gate", c.d_ff), c.activation)
        h = c.norm(gated * ops.linear(h, "mlp.up_proj", "mlp.up", c.d_ff), "mlp.ffn_sub_norm")
        return x + ops.linear(h, "mlp.down_proj", "mlp.down", c.d_model)

    def gate_heads(c, x: Data, a: Data) -> Data:
        """A norm over all heads of the attended values."""
        return ops.rms_norm(a, "self_attn.attn_sub_norm", c.norm_eps, wide=True)
