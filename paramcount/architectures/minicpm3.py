"""MiniCPM3: latent attention as in DeepSeek-V2 in every layer.

Embeddings, residual branches and the last hidden state are scaled.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, activate, norm
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.parts.mla import latent_attention
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, hf
from paramcount.sizes.conditions import latent_heads_stay_whole, padding_in_table
from paramcount.sizes.rules import check_divides


class MiniCPM3(Sizes):
    """Source: modeling_minicpm3.py of the reference; the scales arXiv:2404.06395."""

    reference: ClassVar[str] = "MiniCPM3ForCausalLM"
    rotated: ClassVar[str | None] = "d_rope"
    conditions: ClassVar[tuple[Condition, ...]] = (latent_heads_stay_whole(40), padding_in_table(None))

    vocab_size: Positive = hf(absent=73448)
    d_model: Positive = hf(absent=2560)
    n_layers: Positive = hf(absent=62)
    n_heads: Positive = hf(absent=40)
    d_q_lora: Positive | None = hf(absent=768)
    d_kv_lora: Positive = hf(absent=256)
    d_nope: Positive = hf(absent=64)
    d_rope: Positive = hf(absent=32)
    d_v: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_ff: Positive = hf(absent=6400)
    attention_bias: Flag = hf(absent=False)
    mlp_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(
            c,
            tokens,
            layer,
            enter=lambda x: activate(x, "times scale_emb"),
            leave=lambda x: activate(norm(x, "model.norm"), "times dim_model_base / d_model"),
        )

    def check(c) -> None:
        check_divides(c, "n_heads", "d_model")


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(
        c, x, attend=latent_attention, arrange=scaled_pre_norm, mlp_bias=c.mlp_bias, bias=c.attention_bias
    )


def scaled_pre_norm(x: Data, attention: Any, feed_forward: Any, *, bias: bool) -> Data:
    x = x + activate(attention(norm(x, "input_layernorm")), "times scale_depth / √n_layers")
    return x + activate(feed_forward(norm(x, "post_attention_layernorm")), "times scale_depth / √n_layers")
