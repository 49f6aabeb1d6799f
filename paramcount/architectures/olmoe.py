"""OLMoE: many small experts, a norm over all queries and one over all keys."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import wide_qk_norm
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.parts.feed_forward import mixture
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, equal_to, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill


class Olmoe(Sizes):
    """Source: arXiv:2409.02060, section 2."""

    reference: ClassVar[str] = "OlmoeForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(1),)

    vocab_size: Positive = hf(absent=50304)
    d_model: Positive = hf(absent=2048)
    n_layers: Positive = hf(absent=16)
    n_heads: Positive = hf(absent=16)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head)
    d_expert: Positive = hf("intermediate_size", absent=2048)
    n_routed_experts: Positive = hf("num_local_experts", "num_experts", absent=64)
    n_active_experts: Positive = hf(absent=8)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)

    def check(c) -> None:
        check_heads_fill(c)  # the norm of the queries is as wide as d_model


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, lambda h: mixture(c, h, "mlp."), bias=c.attention_bias, prepare=wide_qk_norm)
