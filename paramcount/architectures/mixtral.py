"""Mixtral: Mistral with a mixture of experts in every layer."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.parts.feed_forward import mixture
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, hf
from paramcount.sizes.conditions import padding_in_table


class Mixtral(Sizes):
    """Source: arXiv:2401.04088, section 2. In the released files w1 is the gate, w3 up and w2 down."""

    reference: ClassVar[str] = "MixtralForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_expert: Positive = hf("intermediate_size", absent=14336)
    n_routed_experts: Positive = hf("num_experts", "num_local_experts", absent=8)
    n_active_experts: Positive = hf(absent=2)
    window: Positive | None = hf(absent=None)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, lambda h: mixture(c, h, "block_sparse_moe.", names=("w1", "w3", "w2")), window=c.window)
