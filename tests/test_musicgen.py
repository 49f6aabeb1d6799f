"""MusicGen: a text encoder, EnCodec and a decoder of codes."""

from __future__ import annotations

import pytest

import paramcount as pc

pytestmark = pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")


def count_encodec_half(d: int, n_lstm: int) -> int:
    """Parameters from samples to frames of EnCodec at 32 kHz; each kernel has a length per output channel."""

    def convolution(d_in: int, d_out: int, width: int) -> int:
        return d_out * d_in * width + d_out + d_out

    n = convolution(1, d, 7)
    for rate in (4, 4, 5, 8):
        n += convolution(d, d // 2, 3) + convolution(d // 2, d, 1) + convolution(d, 2 * d, 2 * rate)
        d *= 2
    return n + n_lstm * (2 * 4 * d * d + 2 * 4 * d) + convolution(d, 128, 7)


def test_the_half_of_encodec_that_musicgen_melody_never_reads_is_unreachable() -> None:
    count = pc.count("musicgen-melody")
    assert sum(count.unreachable.values()) == count_encodec_half(64, 2) == 28_441_984
    assert count.total + sum(count.unreachable.values()) == 1_552_138_818  # transformers 5.23.0, sum of numel
    assert set(count.unreachable_reasons.values()) == {"no forward pass encodes audio to codes"}


def test_codebooks_are_buffers() -> None:
    count = pc.count("musicgen-small")
    # rows, the sums that they are means of, how many vectors, and a flag, for each of the 4 codebooks
    assert count.buffers == 4 * (2 * 2048 * 128 + 2048 + 1)
    assert (count.total, count.unreachable) == (586_884_674, {})  # transformers 5.23.0
