"""FoX, the Forgetting Transformer: softmax attention whose scores fade by a gate for each head, without positions."""

from typing import Any

from paramcount.architectures.transformer import HEAD_EPS, FlaTransformer
from paramcount.declare import Data, ops, parts, sizes


class ForgettingTransformer(FlaTransformer):
    """Source: arXiv:2503.02130, section 3; ForgettingAttention in fla/layers/forgetting_attn.py of
    fla-org/flash-linear-attention, which reads no window in a text and forgets what is before it afterwards."""

    reference = "ForgettingTransformerForCausalLM of fla-org/flash-linear-attention"
    rotated = None
    conditions = (*FlaTransformer.conditions, parts.only("window_size", None))
    window = sizes.constant(None)
    rope = None

    output_gate: sizes.Flag = sizes.hf("use_output_gate", absent=False)

    def mixer(c: Any, x: Data, prefix: str, *reads: Data) -> Data:
        q, k, v = c.project_heads(x, prefix, bias=c.attention_bias)
        if c.qk_norm:
            q, k = (normalise_apart(y, f"{prefix}{name}_norm") for y, name in ((q, "q"), (k, "k")))
        mask = ops.Causal()
        gate = ops.log_decay(ops.linear(x, prefix + "f_proj", "mixer.forget_gate", c.n_heads, bias=True))
        k, v, gate = ops.cache(k, mask), ops.cache(v, mask), ops.cache(gate, mask)  # [m, heads, …]
        s = ops.add_bias(ops.scores(q, k), ops.less_so_far(gate), by_key=True)  # [n_heads, n, m]
        a = ops.weighted_sum(ops.softmax(s, mask=mask), v)  # [n, n_heads, d_head]
        if c.output_gate:
            a = a * ops.activate(ops.linear(x, prefix + "g_proj", "mixer.gate", (c.n_heads, c.d_head)), "sigmoid")
        return parts.project_output(a, prefix + "o_proj", x.shape[-1])


def normalise_apart(x: Data, name: str) -> Data:
    """An RMS norm of each head with weights for each: [n, heads, d]."""
    n, d = x.shape[1:]
    return ops.to_heads(ops.rms_norm(ops.reshape(x, n * d), name, HEAD_EPS, groups=n), n, d)
