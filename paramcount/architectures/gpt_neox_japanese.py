"""GPT-NeoX Japanese: GPT-NeoX one after the other and without biases, but for one behind the last layer's attention."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.gpt_neox import rotary_width, rotated, rotation_fits
from paramcount.flow import Data, attend, elementwise, linear
from paramcount.parts.attentions import fused_qkv
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import Flag, Natural, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.rules import check_heads_fill


class GPTNeoXJapanese(Sizes):
    """Source: modeling_gpt_neox_japanese.py of the reference."""

    reference: ClassVar[str] = "GPTNeoXJapaneseForCausalLM"

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf(absent=2560)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    d_head: Positive = derived(d_model_per_head)
    d_rope: Natural | None = derived(rotary_width(1.0))
    d_ff: Positive = derived(lambda js, c: c["d_model"] * check_no_types(js, "intermediate_multiple_size", 4))
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        kinds = [("layer", c.n_layers - 1), ("last", 1)]
        names = ("embed_in", "layers", "final_layer_norm")
        return decoder(
            c, tokens, layer, kinds, prefix="gpt_neox_japanese.", names=names, norm_bias=True, head_name="embed_out"
        )

    def check(c) -> None:
        check_heads_fill(c)
        rotation_fits(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    names = ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
    return pre_norm(x, lambda h: attention(c, kind, h), lambda h: plain_mlp(h, names, "mlp", c.d_ff), bias=True)


def attention(c: Any, kind: str, x: Data) -> Data:
    q, k, v = fused_qkv(c, x, "attention.query_key_value", bias=False)
    a = linear(attend(rotated(c, q), rotated(c, k), v), "attention.dense", "output_projection", c.d_model)
    return elementwise(a, "bias", "attention.dense_bias", "output_projection", c.d_model) if kind == "last" else a
