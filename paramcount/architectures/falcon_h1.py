"""Falcon-H1: attention and Mamba 2 side by side in every layer, behind one norm."""

from typing import Any

from paramcount.flow import Data, Unknown, activate, join, linear, rms_norm, rope, scale_by, split
from paramcount.parts.decoder import AttentionDecoder, Decoder
from paramcount.parts.state_space import mamba2
from paramcount.sizes import Flag, Natural, Positive, derived, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import not_null, padding_in_table
from paramcount.sizes.mixers import check_mamba_heads, mamba_head, no_key, time_step_limit
from paramcount.sizes.setting_kinds import NUMBER, list_of


class FalconH1(AttentionDecoder):
    """Source: arXiv:2507.22448, section 2; FalconH1DecoderLayer of the reference. Its multipliers are no weights."""

    reference = "FalconH1ForCausalLM"
    gguf = "falcon-h1"
    is_section_type = True
    not_adapted = ("out_proj", "conv1d")
    names = ("embed_tokens", "layers", "final_layernorm")
    rotated = "d_head"
    conditions = (
        padding_in_table(0), no_key("layer_types", "layers_block_type"), check_mamba_heads,
        not_null(
            "embedding_multiplier", "lm_head_multiplier", "key_multiplier", "attention_in_multiplier",
            "attention_out_multiplier", "ssm_in_multiplier", "ssm_out_multiplier",
        ),
    )  # fmt: skip

    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    d_ff: Natural = hf()
    d_ssm: Positive | None = hf("mamba_d_ssm")  # null: mamba_expand says it
    n_mamba_heads: Positive = hf()
    d_mamba_head: Positive = derived(mamba_head)
    n_groups: Positive = hf()
    d_state: Positive = hf()
    d_conv: Positive = hf()
    gated_norm: Flag = hf("mamba_rms_norm", null=False)
    norm_before_gate: Flag = hf("mamba_norm_before_gate", null=False)
    conv_bias: Flag = hf(null=False)
    mixer_bias: Flag = hf(null=False)
    mixer_out_bias: Flag = hf("projectors_bias", null=False)
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=8192)
    time_step_limit = setting(default=time_step_limit)
    embedding_multiplier = setting("embedding_multiplier", default=1.0)
    lm_head_multiplier = setting("lm_head_multiplier", default=1.0)
    attention_in_multiplier = setting("attention_in_multiplier", default=1.0)
    attention_out_multiplier = setting("attention_out_multiplier", default=1.0)
    key_multiplier = setting("key_multiplier", default=1.0)
    ssm_in_multiplier = setting("ssm_in_multiplier", default=1.0)
    ssm_out_multiplier = setting("ssm_out_multiplier", default=1.0)
    # Of gate, x, B, C and step; of gate and output.
    ssm_multipliers = setting("ssm_multipliers", default=[1.0] * 5, kind=list_of(NUMBER, "5 numbers", 5))
    mlp_multipliers = setting("mlp_multipliers", default=[1.0] * 2, kind=list_of(NUMBER, "2 numbers", 2))

    def embed(c, tokens: Data) -> Data:
        return scale_by(Decoder.embed(c, tokens), c.embedding_multiplier)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        mixed = mamba2(
            c, scale_by(h, c.ssm_in_multiplier), "mamba.", out_bias=c.mixer_out_bias, gate=c.gate, multiply=c.multiply
        )
        attended = c.self_attention(scale_by(h, c.attention_in_multiplier), bias=c.attention_bias, prepare=c.prepare)
        x = x + (scale_by(mixed, c.ssm_out_multiplier) + scale_by(attended, c.attention_out_multiplier))
        return x + c.feed_forward(c.norm(x, "pre_ff_layernorm"), "feed_forward.")

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        return rope(q, c.rope), rope(scale_by(k, c.key_multiplier), c.rope)

    def multiply(c, z: Data, u: Data, step: Data) -> tuple[Data, Data, Data]:
        """The projected values by the multipliers of their five parts."""
        by = each_of(c.ssm_multipliers, 5)
        d_inner, d_group = c.n_mamba_heads * c.d_mamba_head, c.n_groups * c.d_state
        x, b, out = (scale_by(part, m) for part, m in zip(split(u, d_inner, d_group, d_group), by[1:4]))
        return scale_by(z, by[0]), u if set(by[1:4]) == {1.0} else join(join(x, b), out), scale_by(step, by[4])

    def gate(c, y: Data, z: Data) -> Data:
        """The norm, which is optional, stands before the gate or after it."""
        z = activate(z, "silu")
        if not c.gated_norm:
            return y * z
        if c.norm_before_gate:
            return rms_norm(y, "mamba.norm", c.norm_eps, groups=c.n_groups) * z
        return rms_norm(y * z, "mamba.norm", c.norm_eps, groups=c.n_groups)

    def feed_forward(c, x: Data, prefix: str) -> Data:
        of_gate, of_output = each_of(c.mlp_multipliers, 2)
        gate = scale_by(linear(x, prefix + "gate_proj", "mlp.gate", c.d_ff, bias=c.mlp_bias), of_gate)
        gated = activate(gate, c.activation) * linear(x, prefix + "up_proj", "mlp.up", c.d_ff, bias=c.mlp_bias)
        return scale_by(linear(gated, prefix + "down_proj", "mlp.down", c.d_model, bias=c.mlp_bias), of_output)

    def head(c, x: Data) -> Data:
        return scale_by(Decoder.head(c, x), c.lm_head_multiplier)


def each_of(values: Any, n: int) -> list[Any]:
    """The values of a list; all unknown if the list is."""
    return [values] * n if isinstance(values, Unknown) else list(values)
