"""ModernBERT as a decoder: most layers look back over a window, the first without a norm.

A transform stands before the tied head.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, activate, fused, layers, linear, lookup, norm
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import head
from paramcount.sizes import (
    ABSENT,
    SLIDING,
    Condition,
    Flag,
    Natural,
    Positive,
    Sizes,
    Words,
    d_model_per_head,
    derived,
    hf,
    per_layer,
)
from paramcount.sizes.conditions import not_null, padding_in_table
from paramcount.sizes.rules import check_heads_fill, check_layer_types


def full_first(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    every = js.get("global_attn_every_n_layers", 3)
    return tuple(SLIDING[i % every == 0] for i in per_layer(c))


def half_window(js: Mapping[str, Any], c: Mapping[str, Any]) -> int | None:
    """local_attention spans both sides of a token, of which a decoder sees one. sliding_window counts before it.

    The reference writes -1 where there is none.
    """
    if "sliding_window" in js:
        window = js["sliding_window"]
        if type(window) is not int or window < -1:
            raise ParamcountError(
                f"= {describe_value(window)}", where="sliding_window", expected="an integer of at least 0, or -1"
            )
        return None if window == -1 else window
    span = js.get("local_attention", 128)
    if span is not None and type(span) is not int:
        raise ParamcountError(f"= {describe_value(span)}", where="local_attention", expected="an integer or null")
    return span // 2 if span else None


class ModernBertDecoder(Sizes):
    """Source: modeling_modernbert_decoder.py of the reference; the encoder it is made from arXiv:2412.13663, section
    2.1.
    """

    reference: ClassVar[str] = "ModernBertDecoderForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(50283), not_null("pad_token_id"))

    vocab_size: Positive = hf(absent=50368)
    d_model: Positive = hf(absent=768)
    n_layers: Positive = hf(absent=22)
    layer_types: Words = hf(absent=full_first, null=ABSENT)
    window: Natural | None = derived(half_window)
    n_heads: Positive = hf(absent=12)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=1152)
    attention_bias: Flag = hf(absent=False)
    mlp_bias: Flag = hf(absent=False)
    norm_bias: Flag = hf("norm_bias", absent=False)
    transform_bias: Flag = hf("classifier_bias", absent=False)
    lm_head_bias: Flag = hf("decoder_bias", absent=True)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        h = activate(linear(states(c, tokens), "lm_head.dense", "other", c.d_model, bias=c.transform_bias), "gelu")
        return head(
            c,
            norm(h, "lm_head.norm", bias=c.norm_bias),
            "model.embeddings.tok_embeddings.weight",
            "decoder",
            bias=c.lm_head_bias,
        )

    def body(c, tokens: Data) -> Data:
        return states(c, tokens)

    def check(c) -> None:
        check_heads_fill(c)
        check_layer_types(c, "layer_types", "n_layers", SLIDING)


def states(c: Any, tokens: Data) -> Data:
    x = lookup(tokens, "model.embeddings.tok_embeddings.weight", "embedding", c.vocab_size, c.d_model)
    x = norm(x, "model.embeddings.norm", bias=c.norm_bias)
    kinds = [(("" if i else "first ") + word, 1) for i, word in enumerate(c.layer_types)]
    x = layers(x, "model.layers.{layer}.", kinds, lambda kind, x: layer(c, kind, x))
    return norm(x, "model.final_norm", bias=c.norm_bias)


def layer(c: Any, kind: str, x: Data) -> Data:
    first, _, word = kind.rpartition(" ")
    h = x if first else norm(x, "attn_norm", bias=c.norm_bias)
    x = x + attention(
        c, h, "attn.", bias=c.attention_bias, o_name="Wo", window=c.window if word == SLIDING[0] else None
    )
    return x + mlp(c, norm(x, "mlp_norm", bias=c.norm_bias))


def mlp(c: Any, x: Data) -> Data:
    gate, up = fused(x, "mlp.Wi", {"mlp.gate": c.d_ff, "mlp.up": c.d_ff}, bias=c.mlp_bias)
    return linear(activate(gate, "gelu") * up, "mlp.Wo", "mlp.down", c.d_model, bias=c.mlp_bias)
