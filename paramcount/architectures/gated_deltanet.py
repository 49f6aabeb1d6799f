"""Gated DeltaNet: the delta rule with a decay for each head."""

from paramcount.declare import Data, ops, parts, sizes


class GatedDeltaNet(parts.ShortConvolutions):
    """Source: arXiv:2412.06464, section 3; GatedDeltaNet in fla/layers/gated_deltanet.py of
    fla-org/flash-linear-attention."""

    reference = "GatedDeltaNetForCausalLM of fla-org/flash-linear-attention"
    defaults = {"n_layers": 21}

    n_heads: sizes.Positive = sizes.hf("num_heads", absent=6)
    n_linear_v_heads: sizes.Positive = sizes.hf("num_v_heads", absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    d_linear_k: sizes.Positive = sizes.hf("head_dim", absent=256)
    d_linear_v: sizes.Positive = sizes.derived(parts.times_factor("d_linear_k", "expand_v", 2.0))
    short_conv: sizes.Flag = sizes.hf("use_short_conv", absent=True)
    output_gate: sizes.Flag = sizes.hf("use_gate", absent=True)

    allow_negative = sizes.setting("allow_neg_eigval", default=False)  # eigenvalues of the state's update

    def mixer(c, x: Data, prefix: str, *reads: Data) -> Data:
        n_v = c.n_linear_v_heads
        q, k = (c.stream(x, prefix + name, (c.n_heads, c.d_linear_k), always=True) for name in ("q", "k"))
        v = c.stream(x, prefix + "v", (n_v, c.d_linear_v), always=True)
        step = ops.linear(x, prefix + "a_proj", "mixer.step", n_v)
        beta = parts.update_rate(x, prefix + "b_proj", n_v, c.allow_negative)
        y = parts.delta_rule(q, k, v, step, beta, *parts.decay(prefix, n_v))
        return parts.gate_heads(c, y, x, prefix, ("o_norm", "o_norm"), gated=c.output_gate)

    def check(c) -> None:
        super().check()
        sizes.check_divides(c, "n_heads", "n_linear_v_heads")
