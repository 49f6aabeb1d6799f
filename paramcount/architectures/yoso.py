"""YOSO: attention weights are probabilities that a query and a key have the same hash."""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def odd_window(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    n = c["d_conv"]
    if n is not None and n % 2 == 0:
        raise ParamcountError(f"= {n} returns one token more", where="conv_window", expected="an odd number")


def read_exponent(js: sizes.ConfigJson, c: sizes.FieldValues) -> object:
    """Without use_expectation, hashes are drawn anew for each text."""
    return js.get("hash_code_len", 9) if js.get("use_expectation", True) else ops.Unknown("use_expectation")


class Yoso(parts.OffsetEncoder):
    """Source: arXiv:2111.09714, section 3; YosoSelfAttention of the reference."""

    reference = "YosoForMaskedLM"
    task_heads = "APPROXIMATE"
    unused_keys = ("num_hash",)
    conditions = (sizes.padding_inside(1), odd_window)
    prefix = "yoso."

    d_conv: sizes.Positive | None = sizes.hf("conv_window", absent=None)

    exponent = sizes.setting(default=read_exponent)

    def attention(c, q: Data, k: Data, v: Data) -> Data:
        q, k = ops.plain_norm(q, "l2", 1e-24), ops.plain_norm(k, "l2", 1e-24)
        y = ops.weighted_sum(ops.collisions(ops.scores(q, k, 1.0), c.exponent), v)  # [n, n_heads, d_head]
        y = ops.plain_norm(y, "l2", 1e-24)
        return y if c.d_conv is None else y + ops.convolve_heads(v, "attention.self.conv", c.d_conv)
