"""YOSO: attention weights are probabilities that a query and a key have the same hash."""

from paramcount.errors import ParamcountError
from paramcount.flow import Data, Unknown, attend, convolve_heads, plain_norm
from paramcount.parts.encoders import OffsetEncoder
from paramcount.sizes import ConfigJson, FieldValues, Positive, hf, setting
from paramcount.sizes.conditions import padding_inside


def odd_window(js: ConfigJson, c: FieldValues) -> None:
    n = c["d_conv"]
    if n is not None and n % 2 == 0:
        raise ParamcountError(f"= {n} returns one token more", where="conv_window", expected="an odd number")


def read_exponent(js: ConfigJson, c: FieldValues) -> object:
    """Without use_expectation, hashes are drawn anew for each text."""
    return js.get("hash_code_len", 9) if js.get("use_expectation", True) else Unknown("use_expectation")


class Yoso(OffsetEncoder):
    """Source: arXiv:2111.09714, section 3; YosoSelfAttention of the reference."""

    reference = "YosoForMaskedLM"
    task_heads = "APPROXIMATE"
    unused_keys = ("num_hash",)
    conditions = (padding_inside(1), odd_window)
    prefix = "yoso."

    d_conv: Positive | None = hf("conv_window", absent=None)

    exponent = setting(default=read_exponent)

    def attention(c, q: Data, k: Data, v: Data) -> Data:
        q, k = plain_norm(q, "l2", 1e-24), plain_norm(k, "l2", 1e-24)
        y = attend(q, k, v, cached=(), scale=1.0, weighs="collisions", exponent=c.exponent)
        y = plain_norm(y, "l2", 1e-24)
        return y if c.d_conv is None else y + convolve_heads(v, "attention.self.conv", c.d_conv)
