"""ModernBERT: an encoder with rotary positions, gated MLPs and windows in two of three layers.

The first layer has no norm before its attention, and no bias is usual.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from paramcount.architectures.modernbert_decoder import ModernBertDecoder, full_first, transform_states
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, lookup
from paramcount.parts import task_heads as heads
from paramcount.parts.decoders import head
from paramcount.parts.encoders import PositionlessEncoder, rotary_attention
from paramcount.parts.feed_forward import fused_gated_mlp
from paramcount.parts.tasks import LABELS, TaskHead, two_labels
from paramcount.sizes import (
    ABSENT,
    SLIDING,
    ConfigJson,
    FieldValues,
    Flag,
    Natural,
    Positive,
    Words,
    derived,
    filled_rotary,
    hf,
    setting,
)
from paramcount.sizes.conditions import angles_fit_heads, padding_in_table, ropes_of_kinds_alone

TABLE = "model.embeddings.tok_embeddings.weight"


def half_span(js: ConfigJson, c: FieldValues) -> int:
    """The tokens that a token sees on either side: half of local_attention. sliding_window counts before it."""
    key = "sliding_window" if "sliding_window" in js else "local_attention"
    span = js.get(key, 128)
    if type(span) is not int or span < 0:
        raise ParamcountError(f"= {describe_value(span)}", where=key, expected="a non-negative integer")
    return span if key == "sliding_window" else span // 2


class ModernBert(PositionlessEncoder):
    """Source: arXiv:2412.13663, section 2.1; ModernBertEncoderLayer of the reference."""

    reference = "ModernBertForMaskedLM"
    task_heads = {
        "ForSequenceClassification": TaskHead(heads.transform_then(lambda c: c.n_labels, is_pooled=True), LABELS),
        "ForTokenClassification": TaskHead(heads.transform_then(lambda c: c.n_labels, is_pooled=False), LABELS),
        "ForQuestionAnswering": TaskHead(
            heads.transform_then(lambda c: c.n_labels, is_pooled=False), LABELS, (two_labels,)
        ),
        "ForMultipleChoice": TaskHead(heads.transform_then(lambda c: 1, is_pooled=True), {}),
    }
    rotated = "d_head"
    conditions = (padding_in_table(50283), ropes_of_kinds_alone, angles_fit_heads)
    prefix = "model."
    layers_name = "layers"
    last_norm = "final_norm"

    n_layers: Positive = hf()  # the reference needs one
    layer_types: Words = hf(absent=full_first, null=ABSENT)
    window: Natural = derived(half_span)
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    norm_bias: Flag = hf("norm_bias")
    transform_bias: Flag = hf("classifier_bias")
    lm_head_bias: Flag = hf("decoder_bias")
    tie_word_embeddings: Flag = hf()

    activation = setting("hidden_activation", default="gelu")
    transform_activation = setting("classifier_activation", default="gelu")
    pooling = setting("classifier_pooling", default="cls")
    norm_eps = setting("norm_eps", default=1e-5)
    rope = filled_rotary("full_attention", 160_000, 8192, key="global_rope_theta")
    local_rope = filled_rotary("sliding_attention", 10_000, 8192, key="local_rope_theta")
    kinds: ClassVar[Any] = ModernBertDecoder.kinds
    norm: ClassVar[Callable[..., Data]] = ModernBertDecoder.norm
    check: ClassVar[Any] = ModernBertDecoder.check

    def inputs(c) -> dict[str, int]:
        return {}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return c.to_first_layer(c.look_up(tokens))

    def look_up(c, tokens: Data) -> Data:
        return lookup(tokens, TABLE, "embedding", c.vocab_size, c.d_model)

    def to_first_layer(c, x: Data) -> Data:
        return c.norm(x, "model.embeddings.norm")

    def layer_of(c, kind: str, x: Data, *memory: Data) -> Data:
        first, _, word = kind.rpartition(" ")
        local: Any = {"window": c.window, "angles": c.local_rope} if word == SLIDING[0] else {}
        h = x if first else c.norm(x, "attn_norm")
        x = x + rotary_attention(c, h, ("attn.Wqkv", "attn.Wo"), bias=c.attention_bias, **local)
        h, names = c.norm(x, "mlp_norm"), ("Wi", "Wo")
        return x + fused_gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias, names=names)

    def head(c, x: Data) -> Data:
        return head(c, c.transform(x, "head."), TABLE, "decoder", bias=c.lm_head_bias)

    def transform(c, x: Data, prefix: str) -> Data:
        return transform_states(c, x, prefix)
