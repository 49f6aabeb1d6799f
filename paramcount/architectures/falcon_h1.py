"""Falcon-H1: attention and Mamba 2 side by side in every layer, behind one norm."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


class FalconH1(parts.AttentionBias, parts.AttentionDecoder):
    """Source: arXiv:2507.22448, section 2; FalconH1DecoderLayer of the reference. Its multipliers are no weights."""

    reference = "FalconH1ForCausalLM"
    gguf = "falcon-h1"
    not_adapted = ("out_proj", "conv1d")
    names = ("embed_tokens", "layers", "final_layernorm")
    conditions = (
        sizes.padding_in_table(0), sizes.no_key("layer_types", "layers_block_type"), sizes.check_mamba_heads,
        sizes.not_null(
            "embedding_multiplier", "lm_head_multiplier", "key_multiplier", "attention_in_multiplier",
            "attention_out_multiplier", "ssm_in_multiplier", "ssm_out_multiplier",
        ),
    )  # fmt: skip

    d_ssm: sizes.Positive | None = sizes.hf("mamba_d_ssm")  # null: mamba_expand says it
    n_mamba_heads: sizes.Positive = sizes.hf()
    d_mamba_head: sizes.Positive = sizes.derived(sizes.mamba_head)
    n_groups: sizes.Positive = sizes.hf()
    d_state: sizes.Positive = sizes.hf()
    d_conv: sizes.Positive = sizes.hf()
    gated_norm: sizes.Flag = sizes.hf("mamba_rms_norm", null=False)
    norm_before_gate: sizes.Flag = sizes.hf("mamba_norm_before_gate", null=False)
    conv_bias: sizes.Flag = sizes.hf(null=False)
    mixer_bias: sizes.Flag = sizes.hf(null=False)
    mixer_out_bias: sizes.Flag = sizes.hf("projectors_bias", null=False)
    mlp_bias: sizes.Flag = sizes.hf()

    time_step_limit = sizes.setting(default=sizes.time_step_limit)
    embedding_multiplier = sizes.setting("embedding_multiplier")
    lm_head_multiplier = sizes.setting("lm_head_multiplier")
    attention_in_multiplier = sizes.setting("attention_in_multiplier")
    attention_out_multiplier = sizes.setting("attention_out_multiplier")
    key_multiplier = sizes.setting("key_multiplier")
    ssm_in_multiplier = sizes.setting("ssm_in_multiplier")
    ssm_out_multiplier = sizes.setting("ssm_out_multiplier")
    # Of gate, x, B, C and step; of gate and output.
    ssm_multipliers = sizes.setting(
        "ssm_multipliers", default=[1.0] * 5, kind=sizes.list_of(sizes.NUMBER, "5 numbers", 5)
    )
    mlp_multipliers = sizes.setting(
        "mlp_multipliers", default=[1.0] * 2, kind=sizes.list_of(sizes.NUMBER, "2 numbers", 2)
    )

    def embed(c, tokens: Data) -> Data:
        return ops.scale_by(parts.Decoder.embed(c, tokens), c.embedding_multiplier)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        mixed = parts.mamba2(
            c,
            ops.scale_by(h, c.ssm_in_multiplier),
            "mamba.",
            out_bias=c.mixer_out_bias,
            gate=c.gate,
            multiply=c.multiply,
        )
        attended = c.self_attention(
            ops.scale_by(h, c.attention_in_multiplier), bias=c.attention_bias, prepare=c.prepare
        )
        x = x + (ops.scale_by(mixed, c.ssm_out_multiplier) + ops.scale_by(attended, c.attention_out_multiplier))
        return x + c.feed_forward(c.norm(x, "pre_ff_layernorm"), "feed_forward.")

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        return ops.rope(q, c.rope), ops.rope(ops.scale_by(k, c.key_multiplier), c.rope)

    def multiply(c, z: Data, u: Data, step: Data) -> tuple[Data, Data, Data]:
        """The projected values by the multipliers of their five parts."""
        by = each_of(c.ssm_multipliers, 5)
        d_inner, d_group = c.n_mamba_heads * c.d_mamba_head, c.n_groups * c.d_state
        x, b, out = (ops.scale_by(part, m) for part, m in zip(ops.split(u, d_inner, d_group, d_group), by[1:4]))
        return (
            ops.scale_by(z, by[0]),
            u if set(by[1:4]) == {1.0} else ops.join(ops.join(x, b), out),
            ops.scale_by(step, by[4]),
        )

    def gate(c, y: Data, z: Data) -> Data:
        """The norm, which is optional, stands before the gate or after it."""
        z = ops.activate(z, "silu")
        if not c.gated_norm:
            return y * z
        if c.norm_before_gate:
            return ops.rms_norm(y, "mamba.norm", c.norm_eps, groups=c.n_groups) * z
        return ops.rms_norm(y * z, "mamba.norm", c.norm_eps, groups=c.n_groups)

    def feed_forward(c, x: Data, prefix: str) -> Data:
        of_gate, of_output = each_of(c.mlp_multipliers, 2)
        gate = ops.scale_by(ops.linear(x, prefix + "gate_proj", "mlp.gate", c.d_ff, bias=c.mlp_bias), of_gate)
        gated = ops.activate(gate, c.activation) * ops.linear(x, prefix + "up_proj", "mlp.up", c.d_ff, bias=c.mlp_bias)
        return ops.scale_by(ops.linear(gated, prefix + "down_proj", "mlp.down", c.d_model, bias=c.mlp_bias), of_output)

    def head(c, x: Data) -> Data:
        return ops.scale_by(parts.Decoder.head(c, x), c.lm_head_multiplier)


def each_of(values: Any, n: int) -> list[Any]:
    """The values of a list; all unknown if the list is."""
    return [values] * n if isinstance(values, ops.Unknown) else list(values)
