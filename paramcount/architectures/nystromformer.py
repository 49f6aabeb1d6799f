"""Nyströmformer: RoBERTa's sizes with attention through landmarks, means of equal parts of the text."""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def read_length(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    return js.get("segment_means_seq_len", 64)


def landmarks_part_the_text(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    n, length = c["n_landmarks"], read_length(js, c)
    if n != length and (length % n or length > c["n_positions"]):
        expected = f"{n}, or a multiple of it that is at most max_position_embeddings"
        raise sizes.make_value_error(length, "segment_means_seq_len", expected)


def one_beginning(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference cannot read the second key that it needs for the other."""
    if js.get("inv_coeff_init_option", False):
        raise ParamcountError("= true", where="inv_coeff_init_option", expected="false")


def odd_filter(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    n = c["d_conv"]
    if n % 2 == 0:
        raise ParamcountError(f"= {n} returns one token more", where="conv_kernel_size", expected="an odd number")


class Nystromformer(parts.OffsetEncoder):
    """Texts have exactly segment_means_seq_len tokens, unless that is the number of landmarks: then attention is exact.

    Source: arXiv:2102.03902, section 3; NystromformerSelfAttention of the reference.
    """

    reference = "NystromformerForMaskedLM"
    task_heads = "APPROXIMATE"
    conditions = (sizes.padding_inside(1), landmarks_part_the_text, one_beginning, odd_filter)
    prefix = "nystromformer."

    n_landmarks: sizes.Positive = sizes.hf("num_landmarks")
    is_exact: sizes.Flag = sizes.derived(lambda js, c: read_length(js, c) == c["n_landmarks"])
    d_landmark: sizes.Positive = sizes.derived(lambda js, c: max(1, read_length(js, c) // c["n_landmarks"]))
    d_conv: sizes.Positive = sizes.hf("conv_kernel_size")

    def attention(c, q: Data, k: Data, v: Data) -> Data:
        if c.is_exact:
            y = ops.attend(q, k, v)  # [n, n_heads, d_head]
        else:
            q_mean, k_mean = ops.mean_of_blocks(q, c.d_landmark), ops.mean_of_blocks(k, c.d_landmark)
            values = ops.attend(q_mean, k, v)  # [n_landmarks, n_heads, d_head]
            values = ops.weighted_sum(ops.pseudoinverse(ops.softmax(ops.scores(q_mean, k_mean))), values)
            y = ops.attend(q, k_mean, values)  # [n, n_heads, d_head]
        return y + ops.convolve_heads(v, "attention.self.conv", c.d_conv)
