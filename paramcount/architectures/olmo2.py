"""OLMo 2 and 3: norms behind attention and MLP instead of before them, a norm over all queries and one over all keys.

In OLMo 3 three layers of four look back over a window.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.olmo import Olmo
from paramcount.flow import Data
from paramcount.parts.attentions import wide_qk_norm
from paramcount.parts.decoders import decoder, post_norm, usual_layer
from paramcount.sizes import ABSENT, Positive, Words, full_every, hf
from paramcount.sizes.rules import check_sliding_or_full


class Olmo2(Olmo):
    """Source: arXiv:2501.00656, section 2."""

    reference: ClassVar[str] = "Olmo2ForCausalLM"
    linear_by_component: ClassVar[bool] = True

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


class Olmo3(Olmo2):
    """Source: modeling_olmo3.py of the reference."""

    reference: ClassVar[str] = "Olmo3ForCausalLM"

    layer_types: Words = hf(absent=full_every(4), null=ABSENT)
    window: Positive = hf(absent=4096)  # the reference refuses null even if no layer uses it

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(kind, 1) for kind in c.layer_types])

    def check(c) -> None:
        check_sliding_or_full(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    window = c.window if kind == "sliding_attention" else None
    return usual_layer(c, x, arrange=post_norm, bias=c.attention_bias, prepare=wide_qk_norm, window=window)
