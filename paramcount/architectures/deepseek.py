"""DeepSeek-MoE: Llama layers whose feed-forward, after the first, is fine-grained experts beside shared ones."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, dense_first, usual_layer
from paramcount.parts.feed_forward import shared_mixture
from paramcount.sizes import ABSENT, Flag, Natural, Positive, Sizes, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.rules import check_heads_fill


class DeepseekMoE(Sizes):
    """Source: arXiv:2401.06066, section 3; modeling_deepseek.py of deepseek-ai/deepseek-moe-16b-base."""

    reference: ClassVar[str] = "DeepseekForCausalLM of deepseek-ai/deepseek-moe-16b-base"
    rotated: ClassVar[str | None] = "d_head"

    vocab_size: Positive = hf(absent=102400)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=30)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=11008)
    n_dense_layers: Natural = hf(absent=0)
    d_expert: Positive = hf(absent=1407)
    n_routed_experts: Positive = hf()
    n_active_experts: Positive = hf()
    n_shared_experts: Natural = hf()
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, dense_first(c))

    def check(c) -> None:
        check_heads_fill(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, (lambda h: shared_mixture(c, h, "mlp.")) if kind == "moe" else None, bias=c.attention_bias)
