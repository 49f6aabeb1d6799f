"""ERNIE 4.5, dense: the Llama layout, neighbours rotated together, one flag for all biases."""

from paramcount.declare import Data, ops, parts, sizes


class Ernie45(parts.AttentionDecoder):
    """Source: modeling_ernie4_5.py of the reference."""

    reference = "Ernie4_5ForCausalLM"
    gguf = "ernie4_5"
    conditions = (sizes.padding_in_table(0),)

    d_head: sizes.Positive = sizes.hf(null=sizes.d_model_per_head)
    bias: sizes.Flag = sizes.hf("use_bias", null=False)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.bias)

    def rotate(c, x: Data) -> Data:
        return ops.rope(x, c.rope, "interleaved")

    def check(c) -> None:
        sizes.check_rotated_in_pairs(c, "d_head")
