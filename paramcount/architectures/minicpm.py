"""MiniCPM and MiniCPM4: Llama's layers, their outputs scaled before the residual; the head is the token table unless the config says no."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes.conditions import without_experts
from paramcount.sizes.fields import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.rules import heads_fill


class MiniCPM(Sizes):
    """Source: modeling_minicpm.py of openbmb/MiniCPM-2B-sft-bf16. The factors on the token
    rows, the residuals and the logits are numbers of the config, not weights."""

    reference: ClassVar[str] = "MiniCPMForCausalLM of openbmb/MiniCPM-2B-sft-bf16"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (without_experts,)

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=11008)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)

    def check(c) -> None:
        heads_fill(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, bias=c.attention_bias)
