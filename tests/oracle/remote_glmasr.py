"""The modules of GLM-ASR as released.

The authors' code is not run. Names, sizes and order are those of modeling_glmasr.py and modeling_audio.py of
zai-org/GLM-ASR-Nano-2512 in github hejack0207/GLM-ASR@fc7bc1e5ce50, and of the encoder of Whisper, whose last norm they
replace.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from torch import nn

from tests.oracle.remote_janus import make_llama
from tests.oracle.remote_multimodal import name_modules
from tests.oracle.remote_ultravox import make_whisper


def make_glmasr(c: Any) -> nn.Module:
    d, d_out = c.whisper_config["d_model"], c.lm_config["hidden_size"]
    whisper, model = make_whisper(c.whisper_config), make_llama(SimpleNamespace(**c.lm_config))
    whisper.layer_norm = nn.Identity()
    model.audio_encoder = name_modules(
        whisper=whisper,
        layer_norm=nn.LayerNorm(d),
        adapting=nn.Sequential(nn.Linear(d * c.merge_factor, 2 * d_out), nn.GELU(), nn.Linear(2 * d_out, d_out)),
        audio_bos_eos_token=nn.Embedding(2, d_out),
    )
    return model
