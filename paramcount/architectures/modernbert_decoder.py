"""ModernBERT as a decoder: most layers look back over a window, the first without a norm.

A transform stands before the tied head.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


def full_first(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    every = js.get("global_attn_every_n_layers", 3)
    return tuple(sizes.SLIDING[i % every == 0] for i in sizes.per_layer(c))


def half_window(js: sizes.ConfigJson, c: sizes.FieldValues) -> int | None:
    """local_attention spans both sides of a token, of which a decoder sees one. sliding_window counts before it.

    The reference writes -1 where there is none.
    """
    if "sliding_window" in js:
        window = js["sliding_window"]
        if type(window) is not int or window < -1:
            raise sizes.make_value_error(window, "sliding_window", "an integer of at least 0, or -1")
        return None if window == -1 else window
    span = js.get("local_attention", 128)
    if span is not None and type(span) is not int:
        raise sizes.make_value_error(span, "local_attention", "an integer or null")
    return span // 2 if span else None


class ModernBertDecoder(parts.AttentionBias, parts.Decoder):
    """Source: ModernBertDecoderLayer of the reference, modeling_modernbert_decoder.py; the encoder it is made from
    arXiv:2412.13663, section 2.1.
    """

    reference = "ModernBertDecoderForCausalLM"
    model_types = ("modernbert-decoder",)
    task_heads = {"ForSequenceClassification": parts.TaskHead(parts.task_heads.classify_normed, parts.LABELS)}
    rotated = "d_head"
    conditions = (sizes.padding_in_table(50283), sizes.ropes_of_kinds_alone, sizes.not_null("pad_token_id"))

    n_layers: sizes.Positive = sizes.hf()  # the reference needs one
    layer_types: sizes.Words = sizes.hf(absent=full_first, null=sizes.ABSENT)
    window: sizes.Natural | None = sizes.derived(half_window)
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()
    norm_bias: sizes.Flag = sizes.hf("norm_bias")
    transform_bias: sizes.Flag = sizes.hf("classifier_bias")
    lm_head_bias: sizes.Flag = sizes.hf("decoder_bias")

    o_name = "Wo"
    names = ("embeddings.tok_embeddings", "layers", "final_norm")
    activation = sizes.setting("hidden_activation")
    transform_activation = sizes.setting("classifier_activation")
    norm_eps = sizes.setting("norm_eps")
    rope = sizes.filled_rotary("full_attention", 160_000, 8192, key="global_rope_theta")
    local_rope = sizes.filled_rotary("sliding_attention", 10_000, 8192, key="local_rope_theta")

    def embed(c, tokens: Data) -> Data:
        return c.norm(super().embed(tokens), "model.embeddings.norm")

    def kinds(c) -> parts.Kinds:
        return [(("" if i else "first ") + word, 1) for i, word in enumerate(c.layer_types)]

    def layer(c, x: Data, kind: str) -> Data:
        first, _, word = kind.rpartition(" ")
        h = x if first else c.norm(x, "attn_norm")
        angles, window = (c.local_rope, c.window) if word == sizes.SLIDING[0] else (c.rope, None)
        prepare = parts.turn_by(angles)
        x = x + c.self_attention(h, "attn.", bias=c.attention_bias, prepare=prepare, window=window)
        h, names = c.norm(x, "mlp_norm"), ("Wi", "Wo")
        return x + parts.fused_gated_mlp(
            h, "mlp.", "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias, names=names
        )

    def norm(c, x: Data, name: str) -> Data:
        return ops.layer_norm(x, name, c.norm_eps, bias=c.norm_bias)

    def head(c, x: Data) -> Data:
        x = transform_states(c, x, "lm_head.")
        return parts.head(c, x, "model.embeddings.tok_embeddings.weight", "decoder", bias=c.lm_head_bias)

    def body(c, tokens: Data) -> Data:
        return c.transform(c.embed(tokens))

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_layer_types(c, "layer_types", "n_layers", sizes.SLIDING)


def transform_states(c: Any, x: Data, prefix: str) -> Data:
    """The last layer's output to what the matrix of a head reads."""
    h = ops.linear(x, prefix + "dense", "other", c.d_model, bias=c.transform_bias)
    y: Data = c.norm(ops.activate(h, c.transform_activation), prefix + "norm")
    return y
