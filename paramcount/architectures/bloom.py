"""BLOOM: ALiBi instead of positions, a norm right after the token embedding, biases everywhere, tied head."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, attend, linear, norm
from paramcount.parts.attentions import alibi, fused_qkv
from paramcount.parts.decoders import decoder
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.conditions import not_null
from paramcount.sizes.rules import check_heads_fill


class Bloom(Sizes):
    """Source: arXiv:2211.05100, section 3.2."""

    reference: ClassVar[str] = "BloomForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (not_null("hidden_size"),)

    vocab_size: Positive = hf(absent=250880)
    d_model: Positive = hf("n_embed", "hidden_size", absent=64, null=ABSENT)
    n_layers: Positive = hf("num_hidden_layers", "n_layer", absent=2)
    n_heads: Positive = hf("num_attention_heads", "n_head", absent=8)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = derived(lambda js, c: 4 * c["d_model"])
    residual_after_norm: Flag = hf("apply_residual_connection_post_layernorm", absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(
            c, tokens, layer, prefix="transformer.", names=("word_embeddings", "h", "ln_f"), norm_bias=True, enter=enter
        )

    def check(c) -> None:
        check_heads_fill(c)


def enter(x: Data) -> Data:
    return norm(x, "transformer.word_embeddings_layernorm", bias=True)


def layer(c: Any, kind: str, x: Data) -> Data:
    h = norm(x, "input_layernorm", bias=True)
    x = (h if c.residual_after_norm else x) + attention(c, h, "self_attention.")
    h = norm(x, "post_attention_layernorm", bias=True)
    return (h if c.residual_after_norm else x) + plain_mlp(
        h, ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"), "mlp", c.d_ff, bias=True
    )


def attention(c: Any, x: Data, prefix: str) -> Data:
    q, k, v = fused_qkv(c, x, prefix + "query_key_value")
    return linear(attend(alibi(q), k, v), prefix + "dense", "output_projection", c.d_model, bias=True)
