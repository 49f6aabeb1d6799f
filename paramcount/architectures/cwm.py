"""CWM: the Llama layout without attention biases.

The first of each four layers attends to all tokens, the others to a sliding window.
"""

from paramcount.declare import Data, parts, sizes

SCALED = {  # the reference's default of rope_parameters
    "rope_type": "llama3", "rope_theta": 1_000_000.0, "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip


class CWM(parts.AttentionDecoder):
    """Source: modeling_cwm.py of the reference."""

    reference = "CwmForCausalLM"
    conditions = (sizes.padding_in_table(None),)
    defaults = {"d_head": 128}

    layer_types: sizes.Words = sizes.hf(absent=sizes.words_by(lambda i, n: i % 4 == 0), null=sizes.ABSENT)
    window: sizes.Positive = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()

    rope = sizes.rotary(absent=SCALED)
    kinds = parts.layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        window = c.window if kind == "sliding_attention" else None
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=window)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", sizes.SLIDING)
        sizes.check_divides(c, "n_heads", "d_model")  # the reference asks it although it cuts no head out of d_model
