"""GSA: gated slot attention, two states of gated linear attention with a softmax between them."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes

OUTPUT_EPS = 1e-5  # of the norm that is fused with the output projection, whatever norm_eps is


class Gsa(parts.ScaledNorms, parts.ShortConvolutions):
    """Source: arXiv:2409.07146, section 3; GatedSlotAttention in fla/layers/gsa.py of
    fla-org/flash-linear-attention. It has no output gate, whatever use_output_gate says."""

    reference = "GSAForCausalLM of fla-org/flash-linear-attention"

    n_heads: sizes.Positive = sizes.hf("num_heads", absent=4)
    n_kv_heads: sizes.Positive = sizes.hf("num_kv_heads", absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    # the config class misspells its arguments exapnd_k and exapnd_v, so that the right keys reach the model as they are
    d_linear_k: sizes.Positive = sizes.derived(parts.head_share("expand_k", 1.0))
    d_linear_v: sizes.Positive = sizes.derived(parts.head_share("expand_v", 1.0))
    n_slots: sizes.Positive = sizes.hf("num_slots", absent=64, null=sizes.equal_to("d_linear_k"))

    feature_map = sizes.setting("feature_map", default="swish", kind=sizes.choice("swish", "relu"))
    normalizer = sizes.setting("gate_logit_normalizer", default=8.0, kind=sizes.NOT_ZERO)
    conditions = (*parts.FlaDecoder.conditions, parts.only("feature_map", "swish", "relu"))

    def mixer(c: Any, x: Data, prefix: str, *reads: Data) -> Data:
        q = c.stream(x, prefix + "q", (c.n_heads, c.d_linear_k))
        k = c.stream(x, prefix + "k", (c.n_kv_heads, c.d_linear_k))
        v = ops.activate(c.stream(x, prefix + "v", (c.n_kv_heads, c.d_linear_v)), "silu")
        q, k = (ops.activate(y, c.feature_map) for y in (q, k))
        gate = ops.linear(x, prefix + "f_proj", "mixer.forget_gate", (c.n_kv_heads, c.n_slots))
        state = ops.SlotState(c.n_heads, c.d_linear_k, c.d_linear_v, c.n_slots)
        y = Data(state, (q, k, v, ops.log_decay(gate, c.normalizer)), (*q.shape[:2], c.d_linear_v))
        y = ops.activate(ops.reshape(y, c.n_heads * c.d_linear_v), "silu")
        return ops.linear(
            parts.normalise_mixed(c, y, prefix + "g_norm", OUTPUT_EPS), prefix + "o_proj", "mixer.out", c.d_model
        )

    def check(c) -> None:
        super().check()
        sizes.check_divides(c, "n_kv_heads", "n_heads")
        sizes.check_heads_fill(c, "n_heads", "d_linear_v")  # the norm is as wide as the model
