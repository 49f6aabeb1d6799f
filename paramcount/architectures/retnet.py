"""RetNet: linear attention with rotary positions and a fixed decay for each head."""

from paramcount.architectures.gla import Gla
from paramcount.declare import Data, ops, parts, sizes


class RetNet(Gla):
    """Source: arXiv:2307.08621, section 2; MultiScaleRetention in fla/layers/multiscale_retention.py of
    fla-org/flash-linear-attention. Its models never have the short convolutions of that layer."""

    reference = "RetNetForCausalLM of fla-org/flash-linear-attention"
    rotated = "d_linear_k"
    unused_keys = (*Gla.unused_keys, "conv_size")
    short_conv = sizes.constant(False)
    d_conv = sizes.constant(0)
    clamp_min = None

    n_heads: sizes.Positive = sizes.hf("num_heads", absent=8)
    d_ff: sizes.Natural = sizes.hf(absent=parts.gated_width_by(2), null=sizes.ABSENT)
    d_linear_k: sizes.Positive = sizes.derived(parts.head_share("expand_k", 1.0))
    d_linear_v: sizes.Positive = sizes.derived(parts.head_share("expand_v", 2.0))

    def mixer(c, x: Data, prefix: str, *reads: Data) -> Data:
        q, k, v = c.project_streams(x, prefix)
        q, k = (ops.rope(y, ops.Rope(10_000.0)) for y in (q, k))
        y = Data(ops.Retention(c.n_heads, c.d_linear_k, c.d_linear_v), (q, k, v), (*q.shape[:2], c.d_linear_v))
        return c.project_out(y, x, prefix)
