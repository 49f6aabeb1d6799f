"""The modules of Ultravox.

The authors' code is not run. Names, sizes and order are those of ultravox_model.py of
fixie-ai/ultravox-v0_6-llama-3_1-8b, and of the encoder of Whisper.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from torch import nn

from tests.oracle.remote import RMSNorm
from tests.oracle.remote_janus import make_llama
from tests.oracle.remote_multimodal import name_modules, repeat


def make_whisper(c: Any) -> nn.Module:
    d = c["d_model"]

    def make_block(i: int) -> nn.Module:
        names = ("k_proj", "v_proj", "q_proj", "out_proj")
        return name_modules(
            self_attn=name_modules(**{name: nn.Linear(d, d, bias=name != "k_proj") for name in names}),
            self_attn_layer_norm=nn.LayerNorm(d),
            fc1=nn.Linear(d, c["encoder_ffn_dim"]),
            fc2=nn.Linear(c["encoder_ffn_dim"], d),
            final_layer_norm=nn.LayerNorm(d),
        )

    return name_modules(
        conv1=nn.Conv1d(c["num_mel_bins"], d, 3),
        conv2=nn.Conv1d(d, d, 3),
        embed_positions=nn.Embedding(c["max_source_positions"], d),
        layers=repeat(c["encoder_layers"], make_block),
        layer_norm=nn.LayerNorm(d),
    )


def make_ultravox(c: Any) -> nn.Module:
    d_in, d_out = c.audio_config["d_model"] * c.stack_factor, c.text_config["hidden_size"]
    middle = c.hidden_size // 2 if c.projector_act == "swiglu" else c.hidden_size
    norm = {"ln_mid": RMSNorm(middle, 1e-6)} if c.projector_ln_mid else {"ln_post": RMSNorm(d_out, 1e-6)}
    return name_modules(
        audio_tower=make_whisper(c.audio_config),
        multi_modal_projector=name_modules(
            ln_pre=RMSNorm(d_in, 1e-6),
            linear_1=nn.Linear(d_in, c.hidden_size, bias=False),
            linear_2=nn.Linear(middle, d_out, bias=False),
            **norm,
        ),
        language_model=make_llama(SimpleNamespace(**c.text_config)),
    )
