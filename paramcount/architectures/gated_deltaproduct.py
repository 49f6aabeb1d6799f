"""Gated DeltaProduct: several steps of the delta rule for each token."""

from paramcount.declare import Data, ops, parts, sizes


class GatedDeltaProduct(parts.ShortConvolutions):
    """Source: arXiv:2502.10297, section 3; GatedDeltaProduct in fla/layers/gated_deltaproduct.py of
    fla-org/flash-linear-attention."""

    reference = "GatedDeltaProductForCausalLM of fla-org/flash-linear-attention"
    defaults = {"n_layers": 21}

    n_heads: sizes.Positive = sizes.hf("num_heads", absent=6)
    d_linear_k: sizes.Positive = sizes.hf("head_dim", absent=256)
    d_linear_v: sizes.Positive = sizes.derived(parts.times_factor("d_linear_k", "expand_v", 2.0))
    n_steps: sizes.Positive = sizes.hf("num_householder", absent=1)
    short_conv: sizes.Flag = sizes.hf("use_short_conv", absent=True)
    output_gate: sizes.Flag = sizes.hf("use_output_gate", absent=True)
    forget_gate: sizes.Flag = sizes.hf("use_forget_gate", absent=False)

    allow_negative = sizes.setting("allow_neg_eigval", default=False)  # eigenvalues of the state's update

    def mixer(c, x: Data, prefix: str, *reads: Data) -> Data:
        n, n_updates = c.n_heads, c.n_heads * c.n_steps
        q = c.stream(x, prefix + "q", (n, c.d_linear_k), always=True)
        k = c.stream(x, prefix + "k", (n_updates, c.d_linear_k), always=True)
        v = c.stream(x, prefix + "v", (n_updates, c.d_linear_v), always=True)
        q, k = (ops.plain_norm(y, "l2", parts.linear_attention.L2_EPS) for y in (q, k))
        inputs: tuple[Data, ...] = (q, k, v, parts.update_rate(x, prefix + "b_proj", n_updates, c.allow_negative))
        if c.forget_gate:
            step = ops.linear(x, prefix + "a_proj", "mixer.step", n)
            inputs += (Data(ops.StepDecay(), (step,), step.shape, parts.decay(prefix, n)),)
        state = ops.DeltaProduct(n, c.d_linear_k, c.d_linear_v, c.n_steps)
        y = Data(state, inputs, (x.shape[0], n, c.d_linear_v))
        return parts.gate_heads(c, y, x, prefix, ("o_norm", "o_norm"), gated=c.output_gate)
