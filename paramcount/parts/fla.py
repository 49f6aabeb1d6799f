"""The decoder of flash-linear-attention: a recurrent mixer or softmax attention, then a gated MLP, in each layer.

Source: fla/models/gla/modeling_gla.py, fla/models/hybrid.py, fla/layers/attn.py and fla/modules/mlp.py of
fla-org/flash-linear-attention, which the other models of it repeat.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data

PUBLISHER = "fla-org/flash-linear-attention"
FEATURE_MAPS = ("relu", "sigmoid", "silu", "swish", "sqrelu")
SQUARED = {"sqrelu": "relu2"}  # what flash-linear-attention calls it


@sizes.options_first
def gated_width_by(js: sizes.ConfigJson, c: sizes.FieldValues, absent: float) -> int:
    """The MLP's hidden size: about as many parameters as hidden_ratio · d_model², in steps of 256. `absent`: the
    config class's hidden_ratio; null is 4."""
    ratio = js.get("hidden_ratio", absent)
    return -(-int(c["d_model"] * (4 if ratio is None else ratio) * 2 / 3) // 256) * 256


@sizes.options_first
def head_share(js: sizes.ConfigJson, c: sizes.FieldValues, key: str, absent: float) -> int:
    """The size of a head if all heads share d_model times the factor in `key`."""
    total = sizes.derivations.part_of(c["d_model"], js.get(key, absent), key)
    if total < 1 or total % c["n_heads"]:
        found = f"= {describe_value(js.get(key, absent))} of hidden_size = {c['d_model']} is {total}"
        raise ParamcountError(found, where=key, expected=f"a multiple of the {c['n_heads']} heads")
    return total // c["n_heads"]


@sizes.options_first
def times_factor(js: sizes.ConfigJson, c: sizes.FieldValues, field: str, key: str, absent: float) -> int:
    """A size times the factor in `key`, whose product is an integer."""
    factor = js.get(key, absent)
    found = sizes.derivations.part_of(c[field], factor, key)
    if found < 1 or abs(found - c[field] * factor) > 1e-5 * found:
        raise ParamcountError(
            f"= {describe_value(factor)} times {c[field]} is no integer", where=key, expected="a factor of whole heads"
        )
    return found


def d_attention_head(js: sizes.ConfigJson, c: sizes.FieldValues) -> int | None:
    """The head size of the layers with softmax attention, whose heads share d_model."""
    heads = c["n_attention_heads"]
    if heads is not None and c["d_model"] % heads:
        raise ParamcountError(
            f"= {heads} does not divide hidden_size = {c['d_model']}",
            where="attn.num_heads",
            expected="a divisor of it",
        )
    return None if heads is None else c["d_model"] // heads


def derived_or_null(derive: sizes.Derivation) -> Any:
    """A field that the reference computes from others; null in a zoo entry without it."""
    return sizes.Field(sizes.Key(None, derive, sizes.NULL), None)


def hybrid_attention(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """`attn` is null, or states layers and num_heads of the layers with softmax attention."""
    found = js.get("attn")
    if found is None:
        return
    if not isinstance(found, dict):
        raise ParamcountError(f"= {describe_value(found)}", where="attn", expected="null or one JSON object")
    for key in ("layers", "num_heads"):
        if found.get(key) is None:
            raise ParamcountError("is missing", where=f"attn.{key}", expected="a value, or attn = null")


def plain_residual(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """No attention over the outputs of earlier layers in place of the residual connection."""
    if js.get("attnres_block_size") is not None:
        found = f"= {describe_value(js['attnres_block_size'])} is not supported"
        raise ParamcountError(found, where="attnres_block_size", expected="null")


def mix_kinds(attention_layers: Iterable[int], n_layers: ops.Size, first: int = 0) -> list[tuple[Hashable, ops.Size]]:
    """Kinds of layers, of which some have attention in place of the mixer. `first`: index of the first layer."""
    kinds: list[tuple[Hashable, ops.Size]] = []
    for i in attention_layers:
        kinds += [("mixer", i - first), ("attention", 1)]
        first = i + 1
    return [*kinds, ("mixer", n_layers - first)]


class FlaDecoder(parts.Decoder):
    """Embedding, layers, norm and LM head of flash-linear-attention. A subclass adds its sizes and `mixer`."""

    names = ("embeddings", "layers", "norm")
    layer_norms: ClassVar[tuple[str, str]] = ("attn_norm", "mlp_norm")
    mixer_prefix: ClassVar[str] = "attn."  # of the mixer, or of the attention in its place
    defaults: ClassVar[dict[str, Any]] = {"vocab_size": 32000, "d_model": 2048, "n_layers": 24}
    unused_keys: ClassVar[tuple[str, ...]] = ("hidden_ratio", "use_gk", "use_gv", "share_conv_kernel", "num_heads")
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        sizes.padding_in_table(None),
        hybrid_attention,
        plain_residual,
    )

    d_ff: sizes.Natural = sizes.hf(absent=gated_width_by(4), null=sizes.ABSENT)
    attention_layers: sizes.Indices = sizes.hf("attn.layers", absent=(), unstated=())
    n_attention_heads: sizes.Positive | None = sizes.hf("attn.num_heads", absent=None, unstated=None)
    n_attention_kv_heads: sizes.Positive | None = sizes.hf(
        "attn.num_kv_heads", absent=sizes.equal_to("n_attention_heads"), null=sizes.ABSENT, unstated=None
    )
    d_attention_head: sizes.Positive | None = derived_or_null(d_attention_head)
    attention_bias: sizes.Flag = sizes.hf("attn.qkv_bias", absent=False, unstated=False)
    window: sizes.Positive | None = sizes.hf("attn.window_size", absent=None, unstated=None)

    activation = sizes.setting("hidden_act", default="swish", kind=sizes.choice("swish", "silu"))
    norm_eps = sizes.setting("norm_eps", default=1e-6)
    rope = sizes.setting(default=lambda config, c: ops.Rope((config.get("attn") or {}).get("rope_theta", 10_000.0)))

    def kinds(c) -> parts.Kinds | None:
        if not c.attention_layers:
            return None
        return mix_kinds(c.attention_layers, c.n_layers)

    def layer(c: Any, x: Data, *reads: Any) -> Any:
        """`reads`: what all mixers read besides x; last the kind of the layer, if there are several."""
        *others, kind = reads if c.attention_layers else (*reads, "mixer")
        h = c.norm(x, c.layer_norms[0])
        x = x + (c.hybrid_attention(h, c.mixer_prefix) if kind == "attention" else c.mixer(h, c.mixer_prefix, *others))
        return x + c.feed_forward(c.norm(x, c.layer_norms[1]))

    def mixer(c, x: Data, prefix: str, *reads: Data) -> Data:
        raise NotImplementedError

    def feed_forward(c, x: Data) -> Data:
        return c.gated_mlp(x)

    def hybrid_attention(c: Any, x: Data, prefix: str) -> Data:
        """Softmax attention in the layers that `attn` lists."""
        n, n_kv, d, bias = c.n_attention_heads, c.n_attention_kv_heads, c.d_attention_head, c.attention_bias
        q = ops.linear(x, prefix + "q_proj", "qkv.q", (n, d), bias=bias)  # [n, n_attention_heads, d_attention_head]
        k = ops.linear(x, prefix + "k_proj", "qkv.k", (n_kv, d), bias=bias)
        v = ops.linear(x, prefix + "v_proj", "qkv.v", (n_kv, d), bias=bias)
        a = ops.attend_causally(ops.rope(q, c.rope), ops.rope(k, c.rope), v, window=c.window)
        return parts.project_output(a, prefix + "o_proj", x.shape[-1])

    def stream(
        c: Any, x: Data, name: str, heads: tuple[ops.Size, ops.Size], activation: str = "silu", *, always: bool = False
    ) -> Data:
        """A projection to (number, size) of heads, with a convolution and an activation if the model has them.

        `name`: with its prefix, of a matrix and a convolution that end in _proj and _conv1d. `always`: whether there is
        an activation without a convolution, too.
        """
        y = ops.linear(x, name + "_proj", "mixer." + name[-1], heads[0] * heads[1])
        if c.short_conv:
            y = ops.convolve(y, name + "_conv1d", c.d_conv, bias=False)
        if activation != "linear" and (c.short_conv or always):
            y = ops.activate(y, activation)
        return ops.to_heads(y, *heads)

    def check(c: Any) -> None:
        sizes.check_layer_indices(c, "attention_layers", "n_layers")
        if c.n_attention_heads is not None:
            sizes.check_divides(c, "n_attention_kv_heads", "n_attention_heads")


class ShortConvolutions(FlaDecoder):
    """A decoder whose mixer may have short convolutions over q, k and v."""

    short_conv: sizes.Flag = sizes.hf("use_short_conv", absent=False)
    d_conv: sizes.Positive = sizes.hf("conv_size", absent=4)


class ScaledNorms(FlaDecoder):
    """A decoder whose config says whether the norm of the mixer has weights; that of the layers always has."""

    norm_weights: sizes.Flag = sizes.hf("elementwise_affine", absent=True, null=False)


def normalise_mixed(c: Any, x: Data, name: str, eps: float | ops.Unknown) -> Data:
    """The norm of what a mixer puts out."""
    return ops.rms_norm(x, name, eps) if getattr(c, "norm_weights", True) else ops.plain_norm(x, "rms", eps)


def map_features(x: Data, function: str | ops.Unknown | None) -> Data:
    """Queries or keys through a function of each element, if there is one."""
    return x if function is None else ops.activate(x, SQUARED.get(str(function), function))


def gate_heads(
    c: Any, y: Data, x: Data, prefix: str, names: tuple[str, str], *, gated: bool, activation: str = "swish"
) -> Data:
    """Heads through a norm, times their gate if they are `gated`, and the output projection.

    `names`: of the norm with a gate and of the norm without one.
    """
    n, d = y.shape[1:]
    y = normalise_mixed(c, y, prefix + names[0 if gated else 1], c.norm_eps)
    if gated:
        z = ops.to_heads(ops.linear(x, prefix + "g_proj", "mixer.gate", n * d), n, d)
        y = y * ops.activate(z, activation)
    return ops.linear(y, prefix + "o_proj", "mixer.out", x.shape[-1])


def update_rate(x: Data, name: str, n_heads: ops.Size, allow_negative: bool | ops.Unknown) -> Data:
    """β of the delta rule, from 0 to 1; to 2 if the state's update may have negative eigenvalues."""
    beta = ops.activate(ops.linear(x, name, "mixer.beta", n_heads), "sigmoid")
    if allow_negative is False:
        return beta
    return ops.scale_by(beta, 2.0 if allow_negative is True else ops.Unknown("allow_negative"))
