"""GLA: gated linear attention, whose state fades by a decay for each channel of the keys."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes

RANK, NORMALIZER = 16, 16.0  # of the decay: the reference's layer has them, its config class does not


class Gla(parts.ScaledNorms, parts.ShortConvolutions):
    """Source: arXiv:2312.06635, section 4; GatedLinearAttention in fla/layers/gla.py of
    fla-org/flash-linear-attention."""

    reference = "GLAForCausalLM of fla-org/flash-linear-attention"

    n_heads: sizes.Positive = sizes.hf("num_heads", absent=4)
    n_kv_heads: sizes.Positive = sizes.hf("num_kv_heads", absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    d_linear_k: sizes.Positive = sizes.derived(parts.head_share("expand_k", 0.5))
    d_linear_v: sizes.Positive = sizes.derived(parts.head_share("expand_v", 1.0))
    output_gate: sizes.Flag = sizes.hf("use_output_gate", absent=True)
    fuse_norm: sizes.Flag = sizes.hf("fuse_norm", absent=True)

    feature_map = sizes.setting("feature_map", default=None, kind=sizes.choice(*parts.FEATURE_MAPS))
    clamp_min = sizes.setting("clamp_min", default=None, kind=sizes.NUMBER)

    def mixer(c, x: Data, prefix: str, *reads: Data) -> Data:
        q, k, v = c.project_streams(x, prefix)
        rank = ops.linear(x, prefix + "gk_proj.0", "mixer.step", RANK)
        step = ops.linear(rank, prefix + "gk_proj.1", "mixer.step", c.n_kv_heads * c.d_linear_k, bias=True)
        decay = ops.log_decay(ops.to_heads(step, c.n_kv_heads, c.d_linear_k), NORMALIZER)
        if c.clamp_min is not None:
            decay = ops.clip(decay, c.clamp_min, None)
        y = Data(ops.GatedState(c.n_heads, c.d_linear_k, c.d_linear_v), (q, k, v, decay), (*q.shape[:2], c.d_linear_v))
        return c.project_out(y, x, prefix)

    def project_streams(c: Any, x: Data, prefix: str) -> tuple[Data, Data, Data]:
        """q [n, n_heads, d_linear_k], k and v [n, n_kv_heads, …]."""
        q = c.stream(x, prefix + "q", (c.n_heads, c.d_linear_k))
        k = c.stream(x, prefix + "k", (c.n_kv_heads, c.d_linear_k))
        v = c.stream(x, prefix + "v", (c.n_kv_heads, c.d_linear_v))
        return parts.map_features(q, c.feature_map), parts.map_features(k, c.feature_map), v

    def project_out(c, y: Data, x: Data, prefix: str) -> Data:
        names = ("g_norm_swish_gate" if c.fuse_norm else "g_norm", "g_norm")
        return parts.gate_heads(c, y, x, prefix, names, gated=c.output_gate)

    def check(c) -> None:
        super().check()
        sizes.check_divides(c, "n_kv_heads", "n_heads")
