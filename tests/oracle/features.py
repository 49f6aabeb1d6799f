"""Models that read mel frames: what the reference is given in the place of samples.

It is put into the functions that give other models a sound, which are not changed themselves, because the proofs of all
model types depend on their source.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch
import transformers

from tests.oracle import sounds

sounds.INPUTS = {**sounds.INPUTS, "input_features": "mel_frames"}


def make_features(make_sound: Any) -> Any:
    @wraps(make_sound)
    def make(model: Any, n: int = sounds.FRAMES) -> dict[str, Any]:
        config = model.config
        if config.model_type == "audio-spectrogram-transformer":
            shape = (1, config.max_length, config.num_mel_bins)
        elif config.model_type == "wav2vec2-bert":
            shape = (1, n, config.feature_projection_input_dim)
        elif config.model_type == "parakeet_ctc":
            shape = (1, n, config.encoder_config.num_mel_bins)
        else:
            found: dict[str, Any] = make_sound(model, n)
            return found
        with torch.random.fork_rng():
            torch.manual_seed(3)
            return {"input_features": torch.randn(shape)}

    return make


def rename_features(cls: Any) -> None:
    """Let a class that calls mel frames its input values take them as features."""
    forward = cls.forward

    def run(self: Any, input_values: Any = None, input_features: Any = None, **named: Any) -> Any:
        return forward(self, input_values if input_features is None else input_features, **named)

    cls.forward = run


sounds.make_sound = make_features(sounds.make_sound)
for cls in (transformers.ASTModel, transformers.ASTForAudioClassification):
    rename_features(cls)
