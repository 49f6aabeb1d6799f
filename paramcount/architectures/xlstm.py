"""xLSTM-7B: matrix LSTM cells and a gated MLP.

Each head has a matrix state (keys by values) with an input and a forget gate.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value


def factor(js: sizes.ConfigJson, key: str, absent: float) -> float:
    """The reference asks for a point in it."""
    found = js.get(key, absent)
    if type(found) is not float:
        raise sizes.make_value_error(found, key, f"a number with a decimal point, such as {absent}")
    return found


def share(key: str, absent: float) -> sizes.Derivation:
    """d_model times a factor, truncated."""
    return lambda js, c: int(c["d_model"] * factor(js, key, absent))


def rounded_up(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    multiple = sizes.check_no_types(js, "ffn_round_up_to_multiple_of", 64)
    return int((c["d_model"] * factor(js, "ffn_proj_factor", 2.667) + multiple - 1) // multiple * multiple)


def one_width(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    width = js.get("embedding_dim")
    if width is not None and width != c["d_model"]:
        raise ParamcountError(
            f"= {describe_value(width)} differs from hidden_size = {c['d_model']}",
            where="embedding_dim",
            expected=f"{c['d_model']}",
        )


class XLSTM(parts.Decoder):
    """Source: arXiv:2503.13427, section 3; arXiv:2405.04517, section 2.3; xLSTMBlock of the reference. Embedding and
    LM head are never tied."""

    reference = "xLSTMForCausalLM"
    tie_word_embeddings = sizes.constant(False)
    # weight_mode = "fused" cannot run: the reference fails to initialise the gates, adding a bias for both gates to one
    # of half its size
    conditions = (one_width, sizes.not_null("num_hidden_layers"), sizes.one_of("weight_mode", ("single",), "single"))

    n_layers: sizes.Natural = sizes.hf("num_blocks", "num_hidden_layers", null=sizes.ABSENT)
    n_heads: sizes.Positive = sizes.hf("num_heads")
    d_qk: sizes.Positive = sizes.derived(share("qk_dim_factor", 0.5))  # of all heads
    d_inner: sizes.Positive = sizes.derived(share("v_dim_factor", 1.0))
    d_head: sizes.Positive = sizes.derived(lambda js, c: c["d_inner"] // c["n_heads"])
    d_qk_head: sizes.Positive = sizes.derived(lambda js, c: c["d_qk"] // c["n_heads"])
    d_ff: sizes.Natural = sizes.derived(rounded_up)
    bias: sizes.Flag = sizes.hf("use_bias")

    prefix = "backbone."
    names = ("embeddings", "blocks", "out_norm")
    activation = "silu"
    rope = None
    norm_eps = sizes.setting("norm_eps")
    memory_eps = sizes.setting("eps")
    gate_cap = sizes.setting("gate_soft_cap")
    logit_cap = sizes.setting("output_logit_soft_cap")

    def layer(c, x: Data) -> Data:
        x = x + mlstm(c, c.norm(x, "norm_mlstm", bias=c.bias), "mlstm_layer.")
        h, names = c.norm(x, "norm_ffn", bias=c.bias), ("proj_up_gate", "proj_up", "proj_down")
        return x + c.gated_mlp(h, "ffn.", bias=c.bias, names=names)

    def norm(c, x: Data, name: str, *, bias: bool = False) -> Data:
        return ops.norm(x, name, kind="rms", eps=c.norm_eps, bias=bias)

    def head(c, x: Data) -> Data:
        return ops.soft_cap(super().head(x), c.logit_cap)

    def check(c) -> None:
        sizes.check_divides(c, "n_heads", "d_qk")
        sizes.check_divides(c, "n_heads", "d_inner")


def mlstm(c: Any, x: Data, prefix: str) -> Data:
    """Source: arXiv:2405.04517, section 2.3."""
    q = ops.to_heads(ops.linear(x, prefix + "q", "mixer.q", c.d_qk, bias=c.bias), c.n_heads, c.d_qk_head)
    k = ops.to_heads(ops.linear(x, prefix + "k", "mixer.k", c.d_qk, bias=c.bias), c.n_heads, c.d_qk_head)
    v = ops.to_heads(ops.linear(x, prefix + "v", "mixer.v", c.d_inner, bias=c.bias), c.n_heads, c.d_head)
    out = ops.linear(x, prefix + "ogate_preact", "mixer.output_gate", c.d_inner, bias=c.bias)
    i = ops.soft_cap(ops.linear(x, prefix + "igate_preact", "mixer.input_gate", c.n_heads, bias=True), c.gate_cap)
    f = ops.soft_cap(ops.linear(x, prefix + "fgate_preact", "mixer.forget_gate", c.n_heads, bias=True), c.gate_cap)
    memory = ops.MatrixMemory(c.n_heads, c.d_qk_head, c.d_head, c.memory_eps)
    y = ops.reshape(Data(memory, (q, k, v, i, f), v.shape), c.d_inner)
    y = ops.norm(y, prefix + "multihead_norm", kind="layer", eps=c.norm_eps, bias=c.bias, groups=c.n_heads)
    return ops.linear(y * ops.activate(out, "sigmoid"), prefix + "out_proj", "mixer.out", c.d_model, bias=c.bias)
