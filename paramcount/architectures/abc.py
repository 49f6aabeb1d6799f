"""ABC: attention with a bounded memory, slots that tokens enter by their share of all tokens so far."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


class Abc(parts.ScaledNorms, parts.ShortConvolutions):
    """Source: arXiv:2110.02488, section 3; ABCAttention in fla/layers/abc.py of fla-org/flash-linear-attention. Its
    models always have the output gate and the norm of that layer."""

    reference = "ABCForCausalLM of fla-org/flash-linear-attention"

    n_heads: sizes.Positive = sizes.hf("num_heads", absent=4)
    d_linear_k: sizes.Positive = sizes.derived(parts.head_share("expand_k", 0.5))
    d_linear_v: sizes.Positive = sizes.derived(parts.head_share("expand_v", 1.0))
    n_slots: sizes.Positive = sizes.hf("num_slots", absent=64, null=sizes.equal_to("d_linear_k"))

    rotates = sizes.setting("use_rope", default=True)
    least = sizes.setting("clamp_min", default=-32, kind=sizes.NUMBER)
    most = sizes.setting("clamp_max", default=32, kind=sizes.NUMBER)

    def mixer(c: Any, x: Data, prefix: str, *reads: Data) -> Data:
        q = c.stream(x, prefix + "q", (c.n_heads, c.d_linear_k))
        k = c.stream(x, prefix + "k", (c.n_heads, c.d_linear_k))
        v = c.stream(x, prefix + "v", (c.n_heads, c.d_linear_v))
        if c.rotates is not False:
            q, k = (ops.rope(y, ops.Rope(10_000.0) if c.rotates is True else c.rotates) for y in (q, k))
        slots = ops.clip(ops.linear(x, prefix + "s_proj", "mixer.input_gate", (c.n_heads, c.n_slots)), c.least, c.most)
        q = ops.scale_by_root(q, c.d_linear_k, "/ √d_linear_k", inverse=True)
        state = ops.SlotState(c.n_heads, c.d_linear_k, c.d_linear_v, c.n_slots)
        y = Data(state, (q, k, v, ops.softmax_decay(slots)), v.shape)
        return parts.gate_heads(c, y, x, prefix, ("g_norm", "g_norm"), gated=True)
