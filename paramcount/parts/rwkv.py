"""What RWKV-5 to RWKV-7 have in common: shifts by one token, heads that see themselves with a bonus, channel mixing."""

from __future__ import annotations

from math import sqrt
from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import ParamcountError
from paramcount.flow import Data

STREAMS = 5  # receptance, decay, key, value and gate, of which each reads its own mixture with the token before
FIRST = "first "  # how the kind of the first layer begins, in which a norm stands in front


def difference_to_last(x: Data) -> Data:
    """The token before minus the token."""
    return ops.token_before(x) + ops.scale_by(x, -1.0, "negate")


def mix_with_last(x: Data, difference: Data, name: str, component: str, *axes: ops.Size) -> Data:
    """x plus a learned share of each channel of its difference to the token before. `axes`: of the stored vector
    besides the channels."""
    return x + ops.multiply_vector(difference, name, component, *axes, x.shape[-1])


def low_rank(
    x: Data,
    name: str,
    component: str,
    rank: ops.Size,
    width: ops.Size,
    *,
    activation: str = "linear",
    bias: bool = True,
) -> Data:
    """Two matrices with a narrow waist: LoRA in fla/layers/rwkv6.py of fla-org/flash-linear-attention."""
    y = ops.linear(x, name + ".lora.0", component, rank)
    y = y if activation == "linear" else ops.activate(y, activation)
    return ops.linear(y, name + ".lora.2", component, width, bias=bias)


def normalise_heads_apart(y: Data, name: str, eps: float | ops.Unknown) -> Data:
    """A layer norm of each head with weights for each, [n, heads, d] to [n, heads · d]."""
    n, d = y.shape[1:]
    return ops.norm(ops.reshape(y, n * d), name, kind="layer", eps=eps, bias=True, groups=n)


def waist(js: sizes.ConfigJson, c: sizes.FieldValues, scale: float, *, per_head: bool = True) -> int:
    """The rank that RWKV-7 gives a low-rank matrix of which the config.json states none."""
    factor = c["d_head"] / 64 if per_head else 1.0
    return max(32, round(scale * sqrt(c["d_model"]) * factor / 32) * 32)


def rounded_to_32(absent: float) -> sizes.Derivation:
    """The hidden size of channel mixing: hidden_ratio times d_model, in steps of 32."""

    def derive(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
        ratio = js.get("hidden_ratio", absent)
        return 32 * ((int(c["d_model"] * (absent if ratio is None else ratio)) + 31) // 32)

    return derive


def no_hybrid(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference fails to run layers with softmax attention between those of RWKV-7."""
    if (js.get("attn") or {}).get("layers"):
        raise ParamcountError("lists layers, which RWKV-7 cannot run", where="attn.layers", expected="attn = null")


class RwkvDecoder(parts.FlaDecoder):
    """flash-linear-attention's decoder with layer norms, one of which may stand in front of the first layer."""

    layer_norms = ("attn_norm", "ffn_norm")

    norm_first: sizes.Flag = sizes.hf("norm_first", absent=True)
    norm_bias: sizes.Flag = sizes.hf("norm_bias", absent=True)

    activation = sizes.setting("hidden_act", default="sqrelu", kind=sizes.choice("sqrelu", "relu", "swish"))
    norm_eps = sizes.setting("norm_eps", default=1e-5)

    def norm(c, x: Data, name: str) -> Data:
        return ops.layer_norm(x, name, c.norm_eps, bias=c.norm_bias)

    def kinds(c) -> parts.Kinds | None:
        if not c.norm_first or not parts.has_layers(c.n_layers):
            return super().kinds()
        word = "attention" if 0 in c.attention_layers else "mixer"
        return [(FIRST + word, 1), *parts.mix_kinds((i for i in c.attention_layers if i), c.n_layers, 1)]

    def activate(c: Any, x: Data) -> Data:
        return parts.map_features(x, c.activation)


def multiply_raw(x: Data, name: str, component: str, width: ops.Size) -> Data:
    """x times a matrix that is stored [in, out] under a name without an ending."""
    (y,) = ops.fused(x, name, {component: width}, transposed=True, suffixes=("", ""))
    return y


class RwkvWorld(parts.Decoder):
    """RWKV-5 and RWKV-6 as their World models are published.

    In inference in 16 bits the authors halve the hidden states after every `rescale_every` layers, and the matrices
    that add to them: nothing else depends on it.
    """

    prefix = "rwkv."
    names = ("embeddings", "blocks", "ln_out")
    head_name = "head"
    defaults: ClassVar[dict[str, Any]] = {"vocab_size": 65536, "d_model": 768, "n_layers": 24}
    unused_keys = ("num_attention_heads", "intermediate_size")  # the code computes both
    float32_if_float16 = ("time_decay", "time_first")

    d_inner: sizes.Positive = sizes.hf(
        "attention_hidden_size", absent=sizes.equal_to("d_model"), null=sizes.equal_to("d_model")
    )
    d_head: sizes.Positive = sizes.hf("head_size", absent=64)
    n_heads: sizes.Positive = sizes.derived(lambda js, c: c["d_inner"] // c["d_head"])
    d_ff: sizes.Positive = sizes.derived(lambda js, c: int(c["d_model"] * 3.5 // 32 * 32))

    activation = "relu2"
    rope = None
    norm_eps = sizes.setting("layer_norm_epsilon", default=1e-5)
    divisor = sizes.setting("head_size_divisor", default=8, kind=sizes.POSITIVE)

    def kinds(c) -> parts.Kinds:
        return parts.first_differs(c.n_layers)

    def layer(c: Any, x: Data, kind: str) -> Data:
        if kind == "first":
            x = c.norm(x, "pre_ln")
        x = x + c.mix_time(c.norm(x, "ln1"), "attention.")
        return x + c.mix_channels(c.norm(x, "ln2"), "feed_forward.")

    def norm(c, x: Data, name: str) -> Data:
        return ops.layer_norm(x, name, c.norm_eps)

    def last(c, x: Data) -> Data:
        return ops.layer_norm(x, "rwkv.ln_out", 1e-5)

    def project(c, prefix: str, r: Data, k: Data, v: Data, g: Data) -> tuple[Data, Data, Data, Data]:
        """Receptance, key and value as heads, and the gate."""
        heads = (c.n_heads, c.d_head)
        r = ops.linear(r, prefix + "receptance", "mixer.r", heads)
        k = ops.linear(k, prefix + "key", "mixer.k", heads)
        v = ops.linear(v, prefix + "value", "mixer.v", heads)
        return r, k, v, ops.activate(ops.linear(g, prefix + "gate", "mixer.gate", c.n_heads * c.d_head), "silu")

    def mix_out(c, y: Data, gate: Data, prefix: str) -> Data:
        """A norm of each head, the gate and the output projection.

        RWKV-5 divides by head_size_divisor in front of the norm, RWKV-6 multiplies its epsilon by the square of it.
        """
        eps = 1e-5 * c.divisor**2 if ops.is_known(c.divisor) else c.divisor
        y = normalise_heads_apart(y, prefix + "ln_x", eps)
        return ops.linear(y * gate, prefix + "output", "mixer.out", c.d_model)

    def gate_channels(c, k: Data, r: Data, prefix: str) -> Data:
        k = ops.activate(ops.linear(k, prefix + "key", "mlp.up", c.d_ff), c.activation)
        r = ops.activate(ops.linear(r, prefix + "receptance", "mlp.gate", c.d_model), "sigmoid")
        return r * ops.linear(k, prefix + "value", "mlp.down", c.d_model)

    def check(c: Any) -> None:
        sizes.check_divides(c, "d_head", "d_inner")
        sizes.check_equal(c, "d_inner", "d_model")  # the norm of the heads is as wide as the model
