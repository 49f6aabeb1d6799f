"""Apertus: a norm on every query and key head, an MLP without a gate whose activation has two learned numbers."""

from paramcount.flow import Activation, Data, Weight, activate, linear
from paramcount.parts.decoder import AttentionDecoder
from paramcount.sizes import (
    ABSENT,
    ConfigJson,
    FieldValues,
    Flag,
    Natural,
    Positive,
    derived,
    equal_to,
    hf,
    rotary,
    setting,
)
from paramcount.sizes.conditions import padding_in_table

SCALED = {  # the reference's default of rope_parameters
    "rope_type": "llama3", "rope_theta": 12_000_000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip


def is_learned(js: ConfigJson, c: FieldValues) -> bool:
    """Of the activations that hidden_act may name only xIELU has parameters."""
    return bool(js.get("hidden_act", "xielu") == "xielu")


class Apertus(AttentionDecoder):
    """Source: modeling_apertus.py of the reference; the activation arXiv:2411.13010."""

    reference = "ApertusForCausalLM"
    gguf = "apertus"
    is_section_type = True
    task_heads = "SCORED_TOKENS"
    rotated = "d_head"
    conditions = (padding_in_table(3),)

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_ff: Natural = hf()
    learned_activation: Flag = derived(is_learned)
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    activation = setting("hidden_act", default="xielu")
    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(12_000_000, positions=65536, absent=SCALED)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "attention_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, qk_norm=True)
        h = linear(c.norm(x, "feedforward_layernorm"), "mlp.up_proj", "mlp.up", c.d_ff)
        h = xielu(h, "mlp.act_fn.") if c.learned_activation else activate(h, c.activation)
        return x + linear(h, "mlp.down_proj", "mlp.down", c.d_model)


def xielu(x: Data, prefix: str) -> Data:
    """xIELU: two learned values, one for each side of zero, and two fixed ones that are saved with them."""
    learned = (Weight(prefix + "alpha_p", "other", (1,)), Weight(prefix + "alpha_n", "other", (1,)))
    fixed = (Weight(prefix + "beta", "other", (), role="buffer"), Weight(prefix + "eps", "other", (), role="buffer"))
    return Data(Activation("xielu"), (x,), x.shape, learned + fixed)
