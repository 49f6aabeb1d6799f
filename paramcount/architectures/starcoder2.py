"""StarCoder2: LayerNorms, a plain MLP and biases everywhere, grouped-query attention with an optional window."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, hf
from paramcount.sizes.conditions import padding_in_table


class Starcoder2(Sizes):
    """Source: arXiv:2402.19173."""

    reference: ClassVar[str] = "Starcoder2ForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=49152)
    d_model: Positive = hf(absent=3072)
    n_layers: Positive = hf(absent=30)
    n_heads: Positive = hf(absent=24)
    n_kv_heads: Positive = hf(absent=2)
    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_ff: Positive = hf(absent=12288)
    window: Positive | None = hf(absent=None)
    bias: Flag = hf("use_bias", absent=True)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, norm_bias=True)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(
        c,
        x,
        lambda h: plain_mlp(h, ("mlp.c_fc", "mlp.c_proj"), "mlp", c.d_ff, bias=c.bias),
        norm_bias=True,
        bias=c.bias,
        window=c.window,
    )
