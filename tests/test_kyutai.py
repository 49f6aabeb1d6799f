"""Kyutai's speech to text: a text and the codes that Mimi makes of a sound, frame by frame."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc

pytestmark = pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
TYPE = {"model_type": "kyutai_speech_to_text"}


def count_mimi_half() -> tuple[int, int]:
    """Parameters of the convolutions from samples to frames, of the default sizes, and of one transformer."""
    convolutions, d = 7 * 64 + 64, 64
    for rate in (4, 5, 6, 8):
        convolutions += 3 * d * (d // 2) + d // 2 + d // 2 * d + d  # the residual block
        convolutions += 2 * rate * d * (2 * d) + 2 * d
        d *= 2
    convolutions += 3 * d * 512 + 512
    layer = 4 * 512 * 512 + 2 * 512 * 2048 + 2 * 2 * 512 + 2 * 512
    return convolutions, 8 * layer


def test_mimi_is_counted_as_far_as_it_makes_codes() -> None:
    count = pc.count(TYPE)
    convolutions, transformer = count_mimi_half()
    last, projections = 4 * 512 * 512, 2 * 512 * 256
    assert count.parts["audio"] == convolutions + transformer + last + projections == 39_129_376
    layer = 4 * 2048 * 2048 + 2048 * 11264 + 2048 * 5632 + 2 * 2048
    table, head = (4001 + 32 * 2049 + 1) * 2048, 4001 * 2048
    assert count.parts["decoder"] == 48 * layer + table + head + 2048
    # sums of vectors, how many there are, and a flag, for each of the 32 codebooks
    assert count.buffers == 32 * (2048 * 256 + 2048 + 1)


def test_what_makes_a_sound_of_codes_is_unreachable() -> None:
    count = pc.count(TYPE)
    assert count.total + sum(count.unreachable.values()) == 2_696_431_425  # transformers 5.23.0, sum of numel
    assert set(count.unreachable_reasons.values()) == {"the forward pass does not decode codes to audio"}
    without = pc.count({**TYPE, "codec_config": {"decoder_config": None}})
    assert without.total == count.total
    assert sum(without.unreachable.values()) == 2 * 256 * 512  # of both kinds of codebooks


def test_a_tied_lm_head_scores_the_rows_of_codes_too() -> None:
    count = pc.count({**TYPE, "tie_word_embeddings": True})
    assert count.components["lm_head"] == 0
    assert count.components["embedding"] == (4001 + 32 * 2049 + 1) * 2048


def test_norms_of_mimi_have_the_epsilon_that_its_section_states() -> None:
    """Source: MimiTransformerLayer of the reference, eps=config.norm_eps."""
    codec: Any = pc.load({**TYPE, "codec_config": {"norm_eps": 0.01}}).sizes
    assert codec.codec.norm_eps == 0.01


def test_the_first_frame_rate_is_that_of_the_file() -> None:
    slow = {**TYPE, "codec_config": {"frame_rate": 6.25}}
    last = {tensor.name: tensor.shape for tensor in pc.count(slow).tensors}["codec_model.downsample.conv.weight"]
    assert last == (512, 512, 2 * 4)  # four of 25 frames per second become one
