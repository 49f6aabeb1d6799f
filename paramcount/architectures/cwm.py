"""CWM: the Llama layout without attention biases.

The first of each four layers attends to all tokens, the others to a sliding window.
"""

from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_type
from paramcount.sizes import ABSENT, ConfigJson, FieldValues, Flag, Natural, Positive, Words, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.derivations import SLIDING, per_layer
from paramcount.sizes.rules import check_divides, check_layer_types

SCALED = {  # the reference's default of rope_parameters
    "rope_type": "llama3", "rope_theta": 1_000_000.0, "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip


def full_first(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    """Words of layer_types where of every four layers the first looks back over all."""
    return tuple(SLIDING[i % 4 == 0] for i in per_layer(c))


class CWM(AttentionDecoder):
    """Source: modeling_cwm.py of the reference."""

    reference = "CwmForCausalLM"
    is_section_type = True
    rotated = "d_head"
    conditions = (padding_in_table(None),)
    defaults = {"d_head": 128}

    d_ff: Natural = hf()
    layer_types: Words = hf(absent=full_first, null=ABSENT)
    window: Positive = hf()
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(1_000_000, positions=131072, absent=SCALED)
    kinds = layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        window = c.window if kind == "sliding_attention" else None
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=window)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", SLIDING)
        check_divides(c, "n_heads", "d_model")  # the reference asks it although it cuts no head out of d_model
