"""MesaNet: linear attention whose queries are solved for, so that the state is a least-squares fit of all tokens."""

from paramcount.declare import Data, ops, parts, sizes


class MesaNet(parts.FlaDecoder):
    """Source: arXiv:2506.05233; MesaNet in fla/layers/mesa_net.py of fla-org/flash-linear-attention, which has its
    convolutions whatever use_short_conv is."""

    reference = "MesaNetForCausalLM of fla-org/flash-linear-attention"
    unused_keys = (*parts.FlaDecoder.unused_keys, "use_short_conv", "expand_v", "elementwise_affine")

    n_heads: sizes.Positive = sizes.hf("num_heads", absent=16)
    d_head: sizes.Positive = sizes.hf("head_dim", absent=128)
    d_conv: sizes.Positive = sizes.hf("conv_size", absent=4)
    output_gate: sizes.Flag = sizes.hf("use_output_gate", absent=False)
    short_conv = sizes.constant(True)

    least = sizes.setting("lambda_lower_bound", default=0.25)

    def mixer(c, x: Data, prefix: str, *reads: Data) -> Data:
        heads = (c.n_heads, c.d_head)
        q, k = (ops.plain_norm(c.stream(x, prefix + name, heads), "l2", 1e-6) for name in ("q", "k"))
        v = ops.to_heads(ops.linear(x, prefix + "v_proj", "mixer.v", c.n_heads * c.d_head), *heads)
        gate = ops.log_decay(ops.linear(x, prefix + "a_proj", "mixer.step", c.n_heads, bias=True))
        beta = ops.activate(ops.linear(x, prefix + "b_proj", "mixer.beta", c.n_heads, bias=True), "sigmoid")
        y = ops.mesa_state(q, k, v, (gate, beta), prefix + "lambda_params", c.least)
        return parts.gate_heads(c, y, x, prefix, ("o_norm", "o_norm"), gated=c.output_gate)
