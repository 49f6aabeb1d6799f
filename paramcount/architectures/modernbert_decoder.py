"""ModernBERT as a decoder: most layers look back over a window, the first without a norm.

A transform stands before the tied head.
"""

from typing import Any

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, activate, layer_norm, linear
from paramcount.parts import task_heads as heads
from paramcount.parts.decoder import Decoder, Kinds
from paramcount.parts.decoders import head
from paramcount.parts.feed_forward import fused_gated_mlp
from paramcount.parts.tasks import LABELS, TaskHead
from paramcount.sizes import (
    SLIDING,
    Flag,
    Natural,
    Positive,
    Words,
    d_model_per_head,
    filled_rotary,
    per_layer,
    setting,
)
from paramcount.sizes.conditions import not_null, padding_in_table, ropes_of_kinds_alone
from paramcount.sizes.fields import ABSENT, ConfigJson, FieldValues, derived, hf
from paramcount.sizes.rules import check_heads_fill, check_layer_types


def full_first(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    every = js.get("global_attn_every_n_layers", 3)
    return tuple(SLIDING[i % every == 0] for i in per_layer(c))


def half_window(js: ConfigJson, c: FieldValues) -> int | None:
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


class ModernBertDecoder(Decoder):
    """Source: ModernBertDecoderLayer of the reference, modeling_modernbert_decoder.py; the encoder it is made from
    arXiv:2412.13663, section 2.1.
    """

    reference = "ModernBertDecoderForCausalLM"
    model_types = ("modernbert-decoder",)
    task_heads = {"ForSequenceClassification": TaskHead(heads.classify_normed, LABELS)}
    rotated = "d_head"
    conditions = (padding_in_table(50283), ropes_of_kinds_alone, not_null("pad_token_id"))

    n_layers: Positive = hf()  # the reference needs one
    layer_types: Words = hf(absent=full_first, null=ABSENT)
    window: Natural | None = derived(half_window)
    n_heads: Positive = hf()
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf()
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    norm_bias: Flag = hf("norm_bias")
    transform_bias: Flag = hf("classifier_bias")
    lm_head_bias: Flag = hf("decoder_bias")
    tie_word_embeddings: Flag = hf()

    prefix = "model."
    names = ("embeddings.tok_embeddings", "layers", "final_norm")
    activation = setting("hidden_activation", default="gelu")
    transform_activation = setting("classifier_activation", default="gelu")
    norm_eps = setting("norm_eps", default=1e-5)
    rope = filled_rotary("full_attention", 160_000, 8192, key="global_rope_theta")
    local_rope = filled_rotary("sliding_attention", 10_000, 8192, key="local_rope_theta")

    def embed(c, tokens: Data) -> Data:
        return c.norm(super().embed(tokens), "model.embeddings.norm")

    def kinds(c) -> Kinds:
        return [(("" if i else "first ") + word, 1) for i, word in enumerate(c.layer_types)]

    def layer(c, x: Data, kind: str) -> Data:
        first, _, word = kind.rpartition(" ")
        h = x if first else c.norm(x, "attn_norm")
        local: Any = {"window": c.window, "angles": c.local_rope} if word == SLIDING[0] else {}
        x = x + c.self_attention(h, "attn.", bias=c.attention_bias, o_name="Wo", **local)
        h, names = c.norm(x, "mlp_norm"), ("Wi", "Wo")
        return x + fused_gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias, names=names)

    def norm(c, x: Data, name: str) -> Data:
        return layer_norm(x, name, c.norm_eps, bias=c.norm_bias)

    def head(c, x: Data) -> Data:
        x = transform_states(c, x, "lm_head.")
        return head(c, x, "model.embeddings.tok_embeddings.weight", "decoder", bias=c.lm_head_bias)

    def body(c, tokens: Data) -> Data:
        return c.transform(c.embed(tokens))

    def check(c) -> None:
        check_heads_fill(c)
        check_layer_types(c, "layer_types", "n_layers", SLIDING)


def transform_states(c: Any, x: Data, prefix: str) -> Data:
    """The last layer's output to what the matrix of a head reads."""
    h = linear(x, prefix + "dense", "other", c.d_model, bias=c.transform_bias)
    y: Data = c.norm(activate(h, c.transform_activation), prefix + "norm")
    return y
