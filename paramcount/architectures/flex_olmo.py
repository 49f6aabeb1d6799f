"""FlexOlmo: experts trained apart from each other in the layers of OLMo 2, with norms behind attention and experts."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import wide_qk_norm
from paramcount.parts.decoders import decoder, post_norm, usual_layer
from paramcount.parts.feed_forward import mixture
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, equal_to, hf
from paramcount.sizes.conditions import padding_in_table


class FlexOlmo(Sizes):
    """Source: arXiv:2507.07024."""

    reference: ClassVar[str] = "FlexOlmoForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(100277),)

    vocab_size: Positive = hf(absent=100352)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head)
    d_expert: Positive = hf("intermediate_size", absent=11008)
    n_routed_experts: Positive = hf("num_local_experts", "num_experts", absent=7)
    n_active_experts: Positive = hf(absent=5)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(
        c, x, lambda h: mixture(c, h, "mlp."), arrange=post_norm, bias=c.attention_bias, prepare=wide_qk_norm
    )
