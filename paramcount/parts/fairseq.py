"""The layer of models that were trained with fairseq and kept its names (fc1, fc2, the norms).

The position embedding starts with two additional rows.
"""

from __future__ import annotations

from typing import Any

from paramcount.flow import Data
from paramcount.parts.classic import crossing, multi_head, norm_before
from paramcount.parts.feed_forward import plain_mlp

NORMS = ("self_attn_layer_norm", "final_layer_norm")
POSITION_OFFSET = 2  # fairseq counts positions from behind its padding token


def self_attention(c: Any, x: Data, *, bias: bool = True) -> Data:
    return multi_head(c, x, "self_attn.", bias=bias)


def feed_forward(c: Any, x: Data, *, bias: bool = True) -> Data:
    return plain_mlp(x, ("fc1", "fc2"), "mlp", c.d_ff, bias=bias)


def fairseq_layer(c: Any, x: Data, memory: Data | None = None) -> Data:
    """Norm first, biases everywhere. `memory`: an encoder's output that x looks at behind its own attention."""
    x = norm_before(x, lambda h: self_attention(c, h), NORMS[0])
    if memory is not None:
        x = crossing(
            x, "", lambda x, memory: norm_before(x, lambda h: look(c, h, memory), "encoder_attn_layer_norm"), memory
        )
    return norm_before(x, lambda h: feed_forward(c, h), NORMS[1])


def look(c: Any, x: Data, memory: Data) -> Data:
    return multi_head(c, x, "encoder_attn.", memory=memory)
