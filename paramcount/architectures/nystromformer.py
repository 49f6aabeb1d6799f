"""Nyströmformer: RoBERTa's sizes with attention through landmarks, means of equal parts of the text."""

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, attend, convolve_heads, mean_of_blocks
from paramcount.parts.encoders import OffsetEncoder
from paramcount.sizes import ConfigJson, FieldValues, Flag, Positive, derived, hf, setting
from paramcount.sizes.conditions import padding_inside


def read_length(js: ConfigJson, c: FieldValues) -> int:
    n: int = js.get("segment_means_seq_len", 64)
    return n


def landmarks_part_the_text(js: ConfigJson, c: FieldValues) -> None:
    n, length = c["n_landmarks"], read_length(js, c)
    if n != length and (length % n or length > c["n_positions"]):
        expected = f"{n}, or a multiple of it that is at most max_position_embeddings"
        raise ParamcountError(f"= {describe_value(length)}", where="segment_means_seq_len", expected=expected)


def one_beginning(js: ConfigJson, c: FieldValues) -> None:
    """The reference cannot read the second key that it needs for the other."""
    if js.get("inv_coeff_init_option", False):
        raise ParamcountError("= true", where="inv_coeff_init_option", expected="false")


def odd_filter(js: ConfigJson, c: FieldValues) -> None:
    n = c["d_conv"]
    if n % 2 == 0:
        raise ParamcountError(f"= {n} returns one token more", where="conv_kernel_size", expected="an odd number")


class Nystromformer(OffsetEncoder):
    """Texts have exactly segment_means_seq_len tokens, unless that is the number of landmarks: then attention is exact.

    Source: arXiv:2102.03902, section 3; NystromformerSelfAttention of the reference.
    """

    reference = "NystromformerForMaskedLM"
    task_heads = "APPROXIMATE"
    conditions = (padding_inside(1), landmarks_part_the_text, one_beginning, odd_filter)
    prefix = "nystromformer."

    n_landmarks: Positive = hf("num_landmarks")
    is_exact: Flag = derived(lambda js, c: read_length(js, c) == c["n_landmarks"])
    d_landmark: Positive = derived(lambda js, c: max(1, read_length(js, c) // c["n_landmarks"]))
    d_conv: Positive = hf("conv_kernel_size")

    activation = setting("hidden_act", default="gelu_new")
    norm_eps = setting("layer_norm_eps", default=1e-5)

    def attention(c, q: Data, k: Data, v: Data) -> Data:
        if c.is_exact:
            y = attend(q, k, v, cached=())
        else:
            q_mean, k_mean = mean_of_blocks(q, c.d_landmark), mean_of_blocks(k, c.d_landmark)
            values = attend(q_mean, k, v, cached=())
            values = attend(q_mean, k_mean, values, cached=(), weighs="inverse")
            y = attend(q, k_mean, values, cached=())
        return y + convolve_heads(v, "attention.self.conv", c.d_conv)
