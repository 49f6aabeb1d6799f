"""LightNet: linear attention whose keys are shares of all tokens so far, so that the state needs no other decay."""

from typing import Any

from paramcount.architectures.hgrn import count_heads
from paramcount.declare import Data, ops, parts, sizes

OUTPUT_EPS = 1e-6  # of the norm that is fused with the gate and the output projection, whatever norm_eps is


class LightNet(parts.ScaledNorms, parts.ShortConvolutions):
    """Source: arXiv:2405.21022, section 3; LightNetAttention in fla/layers/lightnet.py of
    fla-org/flash-linear-attention."""

    reference = "LightNetForCausalLM of fla-org/flash-linear-attention"
    model_types = ("lightnet",)

    n_heads: sizes.Positive = sizes.derived(count_heads)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    gate_rank: sizes.Positive = sizes.hf("gate_low_rank_dim", absent=128)

    def mixer(c: Any, x: Data, prefix: str, *reads: Data) -> Data:
        heads = (c.n_heads, c.d_head)
        q, k, v = (c.stream(x, prefix + name, heads, "linear") for name in ("q", "k", "v"))
        decay = ops.softmax_decay(k)
        inputs = (ops.activate(q, "silu"), ops.one_minus_exp(decay), v, decay)
        y = ops.reshape(Data(ops.GatedState(*heads, c.d_head), inputs, v.shape), c.d_model)
        gate = ops.linear(x, prefix + "g_proj.0", "mixer.gate", c.gate_rank)
        gate = ops.activate(ops.linear(gate, prefix + "g_proj.1", "mixer.gate", c.d_model), "silu")
        y = parts.normalise_mixed(c, y, prefix + "g_norm", OUTPUT_EPS) * gate
        return ops.linear(y, prefix + "o_proj", "mixer.out", c.d_model)

    def check(c) -> None:
        super().check()
        sizes.check_heads_fill(c)
