"""xLSTM-7B: matrix LSTM cells and a gated MLP.

Each head has a matrix state (keys by values) with an input and a forget gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Weight, activate, linear, to_heads
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import ABSENT, Condition, Derivation, Flag, Positive, Sizes, derived, hf
from paramcount.sizes.conditions import not_null, one_of
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.rules import check_divides


def factor(js: Mapping[str, Any], key: str, absent: float) -> float:
    """The reference asks for a point in it."""
    found = js.get(key, absent)
    if type(found) is not float:
        raise ParamcountError(
            f"= {describe_value(found)}", where=key, expected=f"a number with a decimal point, such as {absent}"
        )
    return found


def share(key: str, absent: float) -> Derivation:
    """d_model times a factor, truncated."""
    return lambda js, c: int(c["d_model"] * factor(js, key, absent))


def rounded_up(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    multiple = check_no_types(js, "ffn_round_up_to_multiple_of", 64)
    return int((c["d_model"] * factor(js, "ffn_proj_factor", 2.667) + multiple - 1) // multiple * multiple)


def one_width(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    width = js.get("embedding_dim")
    if width is not None and width != c["d_model"]:
        raise ParamcountError(
            f"= {describe_value(width)} differs from hidden_size = {c['d_model']}",
            where="embedding_dim",
            expected=f"{c['d_model']}",
        )


class XLSTM(Sizes):
    """Source: arXiv:2503.13427, section 3; arXiv:2405.04517, section 2.3. Head and table are never one."""

    reference: ClassVar[str] = "xLSTMForCausalLM"
    # weight_mode = "fused" cannot run: the reference fails to initialise the gates, adding a bias for both gates to one
    # of half its size
    conditions: ClassVar[tuple[Condition, ...]] = (
        one_width,
        not_null("num_hidden_layers"),
        one_of("weight_mode", ("single",), "single"),
    )

    vocab_size: Positive = hf(absent=50304)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf("num_blocks", "num_hidden_layers", absent=32, null=ABSENT)
    n_heads: Positive = hf("num_heads", absent=8)
    d_qk: Positive = derived(share("qk_dim_factor", 0.5))  # of all heads
    d_inner: Positive = derived(share("v_dim_factor", 1.0))
    d_head: Positive = derived(lambda js, c: c["d_inner"] // c["n_heads"])
    d_qk_head: Positive = derived(lambda js, c: c["d_qk"] // c["n_heads"])
    d_ff: Positive = derived(rounded_up)
    bias: Flag = hf("use_bias", absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, prefix="backbone.", names=("embeddings", "blocks", "out_norm"))

    def check(c) -> None:
        check_divides(c, "n_heads", "d_qk")
        check_divides(c, "n_heads", "d_inner")


def layer(c: Any, kind: str, x: Data) -> Data:
    names = ("proj_up_gate", "proj_up", "proj_down")
    feed_forward = lambda h: gated_mlp(h, "ffn.", "mlp", c.d_ff, bias=c.bias, names=names)  # noqa: E731
    return pre_norm(x, lambda h: mlstm(c, h, "mlstm_layer."), feed_forward, ("norm_mlstm", "norm_ffn"), bias=c.bias)


def mlstm(c: Any, x: Data, prefix: str) -> Data:
    """Source: arXiv:2405.04517, section 2.3."""
    q, k, v = (
        linear(x, prefix + name, "mixer." + name, d, bias=c.bias)
        for name, d in (("q", c.d_qk), ("k", c.d_qk), ("v", c.d_inner))
    )
    out = linear(x, prefix + "ogate_preact", "mixer.output_gate", c.d_inner, bias=c.bias)
    i = linear(x, prefix + "igate_preact", "mixer.input_gate", c.n_heads, bias=True)
    f = linear(x, prefix + "fgate_preact", "mixer.forget_gate", c.n_heads, bias=True)
    i, f = activate(i, "soft cap"), activate(f, "soft cap")
    q, k, v = to_heads(q, c.n_heads, c.d_qk_head), to_heads(k, c.n_heads, c.d_qk_head), to_heads(v, c.n_heads, c.d_head)
    # with their normalizer and its scale
    states = ((c.n_heads, c.d_qk_head, c.d_head), (c.n_heads, c.d_qk_head), (c.n_heads, 1))
    y = Data("scan", (q, k, v, i, f), v.shape, states=states)
    y = normed_by_head(c, y, prefix + "multihead_norm") * to_heads(activate(out, "sigmoid"), c.n_heads, c.d_head)
    return linear(y, prefix + "out_proj", "mixer.out", c.d_model, bias=c.bias)


def normed_by_head(c: Any, y: Data, name: str) -> Data:
    """Every head by itself; the weights are of all heads together."""
    weights = (Weight(name + ".weight", "norm", (c.d_inner,)), Weight(name + ".bias", "norm", (c.d_inner,)))
    return Data("norm", (y,), y.shape, weights if c.bias else weights[:1])
