"""Solar Open: routed experts and a shared one in every layer, q, k and v biased if wanted but never o."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.parts.feed_forward import corrected_mixture
from paramcount.sizes import Condition, Flag, Natural, Positive, Sizes, hf
from paramcount.sizes.conditions import grouped_routing, padding_in_table


class SolarOpen(Sizes):
    """Source: modeling_solar_open.py of the reference."""

    reference: ClassVar[str] = "SolarOpenForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (grouped_routing(1, 1), padding_in_table(None))

    vocab_size: Positive = hf(absent=196608)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=48)
    n_heads: Positive = hf(absent=64)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=128)
    d_expert: Positive = hf(absent=1280)
    n_routed_experts: Positive = hf("num_local_experts", "n_routed_experts", absent=128)
    n_active_experts: Positive = hf(absent=8)
    n_shared_experts: Natural = hf(absent=1)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, lambda h: corrected_mixture(c, h, "mlp."), bias=c.attention_bias, o_bias=False)
