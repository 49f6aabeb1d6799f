"""Comba: gated delta rule whose queries are corrected by what the state already says about them."""

from paramcount.architectures.gated_deltanet import GatedDeltaNet
from paramcount.declare import Data, ops, parts, sizes


class Comba(GatedDeltaNet):
    """Source: arXiv:2506.02475, section 3; Comba in fla/layers/comba.py of fla-org/flash-linear-attention. Its models
    have the inner decay and the output correction of that layer, whatever the config says."""

    reference = "CombaForCausalLM of fla-org/flash-linear-attention"

    output_gate: sizes.Flag = sizes.hf("use_output_gate", absent=True)

    def mixer(c, x: Data, prefix: str, *reads: Data) -> Data:
        n, n_v = c.n_heads, c.n_linear_v_heads
        q, k = (c.stream(x, prefix + name, (n, c.d_linear_k), always=True) for name in ("q", "k"))
        v = c.stream(x, prefix + "v", (n_v, c.d_linear_v), always=True)
        inner = ops.multiply_per_head(k, prefix + "decay", "mixer.state", function="sigmoid")
        correction = ops.multiply_per_head(inner, prefix + "D", "mixer.state")
        q = q + ops.scale_by(correction, -1.0, "negate")
        q, k, inner = (
            ops.to_every_head(ops.plain_norm(y, "l2", parts.linear_attention.L2_EPS), n_v) for y in (q, k, inner)
        )
        beta = parts.update_rate(x, prefix + "b_proj", n_v, False)
        step = ops.linear(x, prefix + "a_proj", "mixer.step", n_v)
        decay = Data(ops.StepDecay(), (step,), step.shape, parts.decay(prefix, n_v))
        y = Data(ops.ClosedLoopState(n_v, c.d_linear_k, c.d_linear_v), (q, k, v, inner, decay, beta), v.shape)
        return parts.gate_heads(c, y, x, prefix, ("o_norm", "o_norm"), gated=c.output_gate, activation="sigmoid")
