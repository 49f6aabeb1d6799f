"""HGRN and HGRN 2: gated recurrences whose decays have a lower bound that rises from layer to layer."""

from typing import Any

from paramcount.architectures.gsa import OUTPUT_EPS
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value


class LowerBounded(parts.ScaledNorms, parts.ShortConvolutions):
    """What HGRN and HGRN 2 have in common: the bounds, which all layers share."""

    use_lower_bound: sizes.Flag = sizes.hf("use_lower_bound", absent=True)

    def decode(c, x: Data) -> Data:
        if not c.use_lower_bound:
            return super().decode(x)
        return c.head(c.transform(x, ops.lower_bounds(x, c.prefix + "lower_bounds", c.n_layers, c.d_model)))

    def project(c, x: Data, name: str, width: ops.Size) -> Data:
        """A projection with a convolution, if there is one."""
        y = ops.linear(x, name + "_proj", "mixer." + name[-1], width)
        return ops.convolve(y, name + "_conv1d", c.d_conv, bias=False) if c.short_conv else y


def bounds_fit(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The lower bounds, which are as wide as the model, are those of all channels."""
    if c["use_lower_bound"] and c["d_inner"] != c["d_model"]:
        found = f"= {describe_value(js['expand_ratio'])}, but the lower bounds are as wide as the model"
        raise ParamcountError(found, where="expand_ratio", expected="1, or use_lower_bound = false")


class Hgrn(LowerBounded):
    """Source: arXiv:2311.04823, section 3; HGRNAttention in fla/layers/hgrn.py of fla-org/flash-linear-attention."""

    reference = "HGRNForCausalLM of fla-org/flash-linear-attention"
    conditions = (*LowerBounded.conditions, bounds_fit)

    d_inner: sizes.Positive = sizes.derived(parts.times_factor("d_model", "expand_ratio", 1))

    def mixer(c, x: Data, prefix: str, *bounds: Data) -> Data:
        enters, gate = (c.project(x, prefix + name, c.d_inner) for name in ("i", "f"))
        decay = ops.bounded_log_decay(gate, *bounds)
        enters = ops.activate(enters, "silu") * ops.one_minus_exp(decay)
        y = Data(ops.ChannelState(c.d_inner), (enters, decay), enters.shape)
        z = ops.linear(x, prefix + "g_proj", "mixer.gate", c.d_inner)
        y = parts.normalise_mixed(c, y, prefix + "g_norm", c.norm_eps) * ops.activate(z, "silu")
        return ops.linear(y, prefix + "o_proj", "mixer.out", c.d_model)

    def check(c) -> None:
        super().check()
        if c.use_lower_bound:
            sizes.check_equal(c, "d_inner", "d_model")


def count_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """From expand_ratio, the size of a head, whatever num_heads says; if it is null, from num_heads."""
    ratio = js.get("expand_ratio", 128)
    if ratio is None:
        return int(js["num_heads"])
    if c["d_model"] % ratio:
        found = f"= {describe_value(ratio)} does not divide hidden_size = {c['d_model']}"
        raise ParamcountError(found, where="expand_ratio", expected="the size of a head")
    return int(c["d_model"] // ratio)


class Hgrn2(LowerBounded):
    """Source: arXiv:2404.07904, section 3; HGRN2Attention in fla/layers/hgrn2.py of fla-org/flash-linear-attention."""

    reference = "HGRN2ForCausalLM of fla-org/flash-linear-attention"
    model_types = ("hgrn2",)

    n_heads: sizes.Positive = sizes.derived(count_heads)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)

    def mixer(c: Any, x: Data, prefix: str, *bounds: Data) -> Data:
        heads = (c.n_heads, c.d_head)
        q, gate, v = (c.project(x, prefix + name, c.n_heads * c.d_head) for name in ("q", "f", "i"))
        decay = ops.bounded_log_decay(gate, *bounds)
        q, k, v, decay = (
            ops.to_heads(y, *heads) for y in (ops.activate(q, "silu"), ops.one_minus_exp(decay), v, decay)
        )
        y = ops.reshape(Data(ops.GatedState(*heads, c.d_head), (q, k, v, decay), v.shape), c.d_model)
        return ops.linear(
            parts.normalise_mixed(c, y, prefix + "g_norm", OUTPUT_EPS), prefix + "o_proj", "mixer.out", c.d_model
        )

    def check(c) -> None:
        super().check()
        sizes.check_heads_fill(c)
