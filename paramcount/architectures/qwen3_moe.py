"""Qwen 3 MoE: Qwen 3 with a mixture of experts, none of them shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, dense_or_moe, usual_layer
from paramcount.parts.feed_forward import mixture
from paramcount.sizes import (
    Condition,
    Flag,
    Indices,
    Positive,
    Sizes,
    d_model_per_head,
    derived,
    hf,
    scattered_dense_layers,
)
from paramcount.sizes.conditions import padding_in_table


class Qwen3MoE(Sizes):
    """Source: arXiv:2505.09388, section 2."""

    reference: ClassVar[str] = "Qwen3MoeForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=151936)
    d_model: Positive = hf(absent=2048)
    n_layers: Positive = hf(absent=24)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=4)
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=6144)
    dense_layers: Indices = derived(scattered_dense_layers)
    d_expert: Positive = hf(absent=768)
    n_routed_experts: Positive = hf("num_local_experts", "num_experts", absent=128)
    n_active_experts: Positive = hf(absent=8)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, dense_or_moe(c.dense_layers, c.n_layers))


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(
        c, x, (lambda h: mixture(c, h, "mlp.")) if kind == "moe" else None, bias=c.attention_bias, qk_norm=True
    )


class Qwen3OmniMoeText(Qwen3MoE):
    """The language model of Qwen3-Omni's thinker. Source: arXiv:2509.17765, section 2."""

    reference: ClassVar[str] = "Qwen3OmniMoeThinkerForConditionalGeneration"
    base_model: ClassVar[str | None] = "Qwen3OmniMoeThinkerTextModel"
    defaults: ClassVar[Mapping[str, Any]] = {"vocab_size": 3584, "n_layers": 28, "n_heads": 28, "d_ff": 18944}

    n_routed_experts: Positive = hf("num_experts", absent=128)
