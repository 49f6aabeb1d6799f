"""StarCoder2: LayerNorms, a plain MLP and biases everywhere, grouped-query attention with an optional window."""

from paramcount.declare import Data, parts, sizes


class Starcoder2(parts.AttentionDecoder):
    """Source: arXiv:2402.19173."""

    reference = "Starcoder2ForCausalLM"
    gguf = "starcoder2"
    task_heads = "GENERIC"
    conditions = (sizes.padding_in_table(None), sizes.one_mask())

    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)
    window: sizes.Positive | None = sizes.hf(absent=None)
    bias: sizes.Flag = sizes.hf("use_bias")

    norm_eps = sizes.setting("norm_epsilon")
    norm = parts.use_layer_norm

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.bias, window=c.window)
        h = c.norm(x, "post_attention_layernorm")
        return x + parts.plain_mlp(h, ("mlp.c_fc", "mlp.c_proj"), "mlp", c.d_ff, activation=c.activation, bias=c.bias)
