"""LongT5: T5 whose encoder looks around itself only, or also at sums of blocks of the text."""

from typing import Any

from paramcount.architectures.t5 import QKVO, T5, EncoderAlone, relative_bias
from paramcount.declare import Data, ops, sizes
from paramcount.errors import FieldName, make_choice_error

ATTENTIONS = ("local", "transient-global")


class LongT5(T5):
    """Source: arXiv:2112.07916, section 3; order of operations: LongT5Block."""

    reference = "LongT5ForConditionalGeneration"
    linear_by_component = False
    float32_if_float16 = ()
    unused_keys = ("global_block_size",)

    encoder_attention: sizes.Word = sizes.hf("encoder_attention_type")
    radius: sizes.Positive = sizes.hf("local_radius")
    scaled: sizes.Flag = sizes.derived(lambda js, c: sizes.flag(js, "tie_word_embeddings", True))

    block_size = sizes.setting("global_block_size")

    def self_attention(c, x: Data, bias: Data, *, causal: bool) -> Data:
        if causal:
            return T5.self_attention(c, x, bias, causal=True)
        if c.encoder_attention == ATTENTIONS[0]:
            return attend_nearby(c, x, x, bias, "layer.0.LocalSelfAttention.")
        prefix = "layer.0.TransientGlobalSelfAttention."
        blocks = c.norm(ops.sum_blocks(x, c.block_size), prefix + "global_input_layer_norm")
        return attend_nearby(c, x, ops.put_in_front(blocks, x), bias, prefix)

    def relative_bias(c, x: Data, *, causal: bool) -> Data:
        if causal:
            return T5.relative_bias(c, x, causal=True)
        if c.encoder_attention == ATTENTIONS[0]:
            return relative_bias(c, x, "LocalSelfAttention.relative_attention_bias", causal=False)
        prefix = "TransientGlobalSelfAttention."
        near = relative_bias(c, x, prefix + "relative_attention_bias", causal=False)
        far = relative_bias(c, x, prefix + "global_relative_attention_bias", causal=False, block=c.block_size)
        return ops.put_in_front(far, near, axis=1)

    def check(c) -> None:
        if c.encoder_attention not in ATTENTIONS:
            raise make_choice_error(c.encoder_attention, ATTENTIONS, where=FieldName("encoder_attention"))


class LongT5Encoder(EncoderAlone, LongT5):
    reference = "LongT5EncoderModel"
    model_types = ("longt5.LongT5EncoderModel",)


def attend_nearby(c: Any, x: Data, source: Data, bias: Data, prefix: str) -> Data:
    """Attention to the tokens up to c.radius away, and in `source` to sums of blocks in front of them."""
    heads = (c.n_heads, c.d_head)
    q = ops.linear(x, prefix + QKVO[0], "qkv.q", heads)
    k, v = (ops.linear(source, prefix + name, f"qkv.{name}", heads) for name in QKVO[1:3])
    a = ops.attend(q, k, v, bias, mask=ops.Window(c.radius + 1, c.radius), scale=1.0)  # [n, n_heads, d_head]
    return ops.linear(a, prefix + QKVO[3], "output_projection", c.d_model)
