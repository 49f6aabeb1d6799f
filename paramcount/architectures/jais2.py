"""Jais 2: the layout of AFM with LayerNorms and biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.arcee import Arcee
from paramcount.flow import Data, layer_norm
from paramcount.sizes.setting_fields import rotary, setting


class Jais2(Arcee):
    """Source: modeling_jais2.py of the reference."""

    reference: ClassVar[str] = "Jais2ForCausalLM"
    defaults: ClassVar[Mapping[str, Any]] = {
        "vocab_size": 150272,
        "d_model": 3328,
        "n_heads": 26,
        "d_ff": 26624,
        "attention_bias": True,
        "mlp_bias": True,
    }

    norm_eps: ClassVar = setting("layer_norm_eps", default=1e-5)
    rope: ClassVar = rotary(positions=8192)

    def norm(c, x: Data, name: str) -> Data:
        return layer_norm(x, name, c.norm_eps)
