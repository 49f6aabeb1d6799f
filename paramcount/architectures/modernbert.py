"""ModernBERT: an encoder with rotary positions, gated MLPs and windows in two of three layers.

The first layer has no norm before its attention, and no bias is usual.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from paramcount.architectures.modernbert_decoder import ModernBertDecoder, full_first, transform_states
from paramcount.declare import Data, ops, parts, sizes

TABLE = "model.embeddings.tok_embeddings.weight"


def half_span(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The tokens that a token sees on either side: half of local_attention. sliding_window counts before it."""
    key = "sliding_window" if "sliding_window" in js else "local_attention"
    span = js.get(key, 128)
    if type(span) is not int or span < 0:
        raise sizes.make_value_error(span, key, "a non-negative integer")
    return span if key == "sliding_window" else span // 2


class ModernBert(parts.PositionlessEncoder):
    """Source: arXiv:2412.13663, section 2.1; ModernBertEncoderLayer of the reference."""

    reference = "ModernBertForMaskedLM"
    task_heads = {
        "ForSequenceClassification": parts.TaskHead(parts.task_heads.transform_then(is_pooled=True), parts.LABELS),
        "ForTokenClassification": parts.TaskHead(parts.task_heads.transform_then(is_pooled=False), parts.LABELS),
        "ForQuestionAnswering": parts.TaskHead(
            parts.task_heads.transform_then(is_pooled=False), parts.LABELS, (parts.two_labels,)
        ),
        "ForMultipleChoice": parts.TaskHead(parts.task_heads.transform_then(1, is_pooled=True), {}),
    }
    rotated = "d_head"
    conditions = (sizes.padding_in_table(50283), sizes.ropes_of_kinds_alone, sizes.angles_fit_heads)
    prefix = "model."
    layers_name = "layers"
    last_norm = "final_norm"

    n_layers: sizes.Positive = sizes.hf()  # the reference needs one
    layer_types: sizes.Words = sizes.hf(absent=full_first, null=sizes.ABSENT)
    window: sizes.Natural = sizes.derived(half_span)
    attention_bias: sizes.Flag = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()
    norm_bias: sizes.Flag = sizes.hf("norm_bias")
    transform_bias: sizes.Flag = sizes.hf("classifier_bias")
    lm_head_bias: sizes.Flag = sizes.hf("decoder_bias")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    activation = sizes.setting("hidden_activation")
    transform_activation = sizes.setting("classifier_activation")
    pooling = sizes.setting("classifier_pooling")
    norm_eps = sizes.setting("norm_eps")
    rope = sizes.filled_rotary("full_attention", 160_000, 8192, key="global_rope_theta")
    local_rope = sizes.filled_rotary("sliding_attention", 10_000, 8192, key="local_rope_theta")
    kinds: ClassVar[Any] = ModernBertDecoder.kinds
    norm: ClassVar[Callable[..., Data]] = ModernBertDecoder.norm
    check: ClassVar[Any] = ModernBertDecoder.check

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return c.to_first_layer(c.look_up(tokens))

    def look_up(c, tokens: Data) -> Data:
        return ops.lookup(tokens, TABLE, "embedding", c.vocab_size, c.d_model)

    def to_first_layer(c, x: Data) -> Data:
        return c.norm(x, "model.embeddings.norm")

    def layer_of(c, kind: str, x: Data, *memory: Data) -> Data:
        first, _, word = kind.rpartition(" ")
        local: Any = {"window": c.window, "angles": c.local_rope} if word == sizes.SLIDING[0] else {}
        h = x if first else c.norm(x, "attn_norm")
        x = x + parts.rotary_attention(c, h, ("attn.Wqkv", "attn.Wo"), bias=c.attention_bias, **local)
        h, names = c.norm(x, "mlp_norm"), ("Wi", "Wo")
        return x + parts.fused_gated_mlp(
            h, "mlp.", "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias, names=names
        )

    def head(c, x: Data) -> Data:
        return parts.head(c, c.transform(x, "head."), TABLE, "decoder", bias=c.lm_head_bias)

    def transform(c, x: Data, prefix: str) -> Data:
        return transform_states(c, x, prefix)
