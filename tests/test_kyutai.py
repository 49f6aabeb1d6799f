"""Kyutai's speech to text: a text and the codes that Mimi makes of a sound, frame by frame."""

from __future__ import annotations

import pytest

import paramcount as pc

pytestmark = pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
TYPE = {"model_type": "kyutai_speech_to_text"}


def test_what_makes_a_sound_of_codes_is_unreachable() -> None:
    count = pc.count(TYPE)
    assert count.total + sum(count.unreachable.values()) == 2_696_431_425  # transformers 5.23.0, sum of numel
    assert set(count.unreachable_reasons.values()) == {"the forward pass does not decode codes to audio"}
    without = pc.count({**TYPE, "codec_config": {"decoder_config": None}})
    assert without.total == count.total
    assert sum(without.unreachable.values()) == 2 * 256 * 512  # of both kinds of codebooks


def test_the_first_frame_rate_is_that_of_the_file() -> None:
    slow = {**TYPE, "codec_config": {"frame_rate": 6.25}}
    last = {tensor.name: tensor.shape for tensor in pc.count(slow).tensors}["codec_model.downsample.conv.weight"]
    assert last == (512, 512, 2 * 4)  # four of 25 frames per second become one
