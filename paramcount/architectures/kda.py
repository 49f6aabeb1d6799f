"""Kimi Delta Attention in all layers: the delta rule with a decay for each channel of the keys."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


class Kda(parts.ShortConvolutions):
    """Source: arXiv:2510.26692, section 3; KimiDeltaAttention in fla/layers/kda.py of
    fla-org/flash-linear-attention."""

    reference = "KDAForCausalLM of fla-org/flash-linear-attention"

    n_heads: sizes.Positive = sizes.hf("num_heads", absent=16)
    n_linear_v_heads: sizes.Positive = sizes.hf("num_v_heads", absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    d_linear_k: sizes.Positive = sizes.hf("head_dim", absent=128)
    d_linear_v: sizes.Positive = sizes.derived(parts.times_factor("d_linear_k", "expand_v", 1.0))
    short_conv: sizes.Flag = sizes.hf("use_short_conv", absent=True)

    allow_negative = sizes.setting("allow_neg_eigval", default=False)  # eigenvalues of the state's update
    floor = sizes.setting("lower_bound", default=None, kind=sizes.NUMBER)  # of the logarithm of the decay

    def mixer(c: Any, x: Data, prefix: str, *reads: Data) -> Data:
        n, d_k, d_v = c.n_linear_v_heads, c.d_linear_k, c.d_linear_v
        q, k = (c.stream(x, prefix + name, (c.n_heads, d_k), always=True) for name in ("q", "k"))
        v = c.stream(x, prefix + "v", (n, d_v), always=True)
        step = ops.linear(
            ops.linear(x, prefix + "f_proj.0", "mixer.step", d_v), prefix + "f_proj.1", "mixer.step", n * d_k
        )
        held = (
            ops.Weight(prefix + "A_log", "mixer.state", (n,)),
            ops.Weight(prefix + "dt_bias", "mixer.state", (n * d_k,)),
        )
        beta = parts.update_rate(x, prefix + "b_proj", n, c.allow_negative)
        y = parts.delta_rule(q, k, v, ops.to_heads(step, n, d_k), beta, *held, floor=c.floor)
        gate = ops.linear(x, prefix + "g_proj.0", "mixer.gate", d_v)
        gate = ops.to_heads(ops.linear(gate, prefix + "g_proj.1", "mixer.gate", n * d_v, bias=True), n, d_v)
        names = (prefix + "o_norm", prefix + "o_proj")
        return parts.gated_output(y, gate, *names, x.shape[-1], eps=c.norm_eps, activation="sigmoid")

    def check(c) -> None:
        super().check()
        sizes.check_divides(c, "n_heads", "n_linear_v_heads")
