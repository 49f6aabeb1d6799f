"""Linear attention without a decay, with learned or fixed feature maps of queries and keys."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import make_choice_error

MAPS = ("elementwise_product", "hedgehog", "t2r", "elu", "relu", "identity")  # of the reference, but for dpfp


class LinearAttn(parts.ScaledNorms):
    """Source: arXiv:2006.16236, section 3; LinearAttention in fla/layers/linear_attn.py of
    fla-org/flash-linear-attention."""

    reference = "LinearAttentionForCausalLM of fla-org/flash-linear-attention"
    conditions = (*parts.FlaDecoder.conditions, parts.only("tie_feature_map_qk", False))

    n_heads: sizes.Positive = sizes.hf("num_heads", absent=4)
    n_kv_heads: sizes.Positive = sizes.hf("num_kv_heads", absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    d_linear_k: sizes.Positive = sizes.derived(parts.head_share("expand_k", 1.0))
    d_linear_v: sizes.Positive = sizes.derived(parts.head_share("expand_v", 1.0))
    feature_map: sizes.Word = sizes.hf("feature_map", absent="elementwise_product")

    norms_q = sizes.setting("norm_q", default=False)
    norms_k = sizes.setting("norm_k", default=False)
    normalises = sizes.setting("norm_feature_map", default=False)  # the output, by the sum of the keys
    short_conv = sizes.constant(False)

    def mixer(c: Any, x: Data, prefix: str, *reads: Data) -> Data:
        q = c.map(c.stream(x, prefix + "q", (c.n_heads, c.d_linear_k)), prefix + "feature_map_q.")
        k = c.map(c.stream(x, prefix + "k", (c.n_kv_heads, c.d_linear_k)), prefix + "feature_map_k.")
        v = c.stream(x, prefix + "v", (c.n_kv_heads, c.d_linear_v))
        q = ops.divide_by_sum(q, 1e-4) if c.norms_q else q
        k = ops.divide_by_sum(k, 1e-4) if c.norms_k else k
        d_mapped = q.shape[-1]
        y = Data(ops.SummedState(c.n_heads, d_mapped, c.d_linear_v), (q, k, v), (*q.shape[:2], c.d_linear_v))
        if c.normalises:
            y = Data(ops.KeySum(c.n_heads, d_mapped), (y, q, k), y.shape)
        return ops.linear(
            parts.normalise_mixed(c, y, prefix + "norm", c.norm_eps), prefix + "o_proj", "mixer.out", c.d_model
        )

    def map(c, x: Data, prefix: str) -> Data:
        """Queries or keys, [n, heads, d_linear_k], through the feature map, whose matrices all heads share."""
        if c.feature_map == "elementwise_product":
            return c.transform_heads(x, prefix + "layer1") * c.transform_heads(x, prefix + "layer2")
        if c.feature_map == "hedgehog":
            y = ops.scale_by(c.transform_heads(x, prefix + "layer"), 2.0)
            return ops.activate(ops.join(y, ops.scale_by(y, -1.0, "negate")), "softmax")
        if c.feature_map == "t2r":
            return ops.activate(c.transform_heads(x, prefix + "layer", bias=False), "relu")
        if c.feature_map == "elu":
            return ops.scale_by(ops.activate(x, "elu"), 1.0, "1 + x", shift=1.0)
        return ops.activate(x, "relu") if c.feature_map == "relu" else x

    def transform_heads(c, x: Data, name: str, *, bias: bool = True) -> Data:
        y = ops.linear_by_head(
            x, c.d_linear_k, ops.Weight(name + ".weight", "mixer.map", (c.d_linear_k, c.d_linear_k)), of="all heads"
        )
        return ops.add_vector(y, name + ".bias", "mixer.map", c.d_linear_k) if bias else y

    def check(c) -> None:
        super().check()
        sizes.check_divides(c, "n_kv_heads", "n_heads")
        if c.feature_map not in MAPS:
            raise make_choice_error(c.feature_map, MAPS, where="feature_map")
