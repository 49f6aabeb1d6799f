"""DeltaNet: linear attention whose state is corrected by the delta rule, without a decay."""

from paramcount.declare import Data, ops, parts, sizes

ACTIVATIONS = ("silu", "relu", "elu", "identity")


class DeltaNet(parts.ShortConvolutions):
    """Source: arXiv:2406.06484, sections 2 and 3; DeltaNet in fla/layers/delta_net.py of
    fla-org/flash-linear-attention."""

    reference = "DeltaNetForCausalLM of fla-org/flash-linear-attention"

    n_heads: sizes.Positive = sizes.hf("num_heads", absent=16)
    d_linear_k: sizes.Positive = sizes.derived(parts.head_share("expand_k", 1.0))
    d_linear_v: sizes.Positive = sizes.derived(parts.head_share("expand_v", 1.0))
    short_conv: sizes.Flag = sizes.hf("use_short_conv", absent=True)
    output_gate: sizes.Flag = sizes.hf("use_gate", absent=False)
    learned_rate: sizes.Flag = sizes.hf("use_beta", absent=True)

    allow_negative = sizes.setting("allow_neg_eigval", default=False)  # eigenvalues of the state's update
    qk_activation = sizes.setting("qk_activation", default="silu", kind=sizes.choice(*ACTIVATIONS))
    qk_norm = sizes.setting("qk_norm", default="l2", kind=sizes.choice("l2", "sum"))

    def mixer(c, x: Data, prefix: str, *reads: Data) -> Data:
        heads = (c.n_heads, c.d_linear_k)
        q, k = (c.normalise(c.stream(x, prefix + name, heads, "linear")) for name in ("q", "k"))
        v = c.stream(x, prefix + "v", (c.n_heads, c.d_linear_v), always=True)
        inputs: tuple[Data, ...] = (q, k, v)
        if c.learned_rate:
            inputs += (parts.update_rate(x, prefix + "b_proj", c.n_heads, c.allow_negative),)
        y = Data(ops.DeltaState(c.n_heads, c.d_linear_k, c.d_linear_v), inputs, v.shape)
        return parts.gate_heads(c, y, x, prefix, ("o_norm", "o_norm"), gated=c.output_gate)

    def normalise(c, x: Data) -> Data:
        """Queries or keys, activated, with a length or a sum of 1."""
        if c.qk_activation != "identity":
            x = ops.activate(x, c.qk_activation)
        if c.qk_activation == "elu":
            x = ops.scale_by(x, 1.0, "1 + x", shift=1.0)
        return ops.divide_by_sum(x) if c.qk_norm == "sum" else ops.plain_norm(x, "l2", parts.linear_attention.L2_EPS)
