"""T5Gemma: an encoder and a decoder of Gemma 2's layers, each with sizes and a token embedding of its own."""

from paramcount.architectures.gemma import enlarge, gelu_mlp
from paramcount.architectures.gemma2 import Gemma2Layers, window
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def both_stacks(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if not sizes.flag(js, "is_encoder_decoder", absent=True):
        raise ParamcountError(
            "= false selects the encoder alone, which is not supported", where="is_encoder_decoder", expected="true"
        )


class T5GemmaEncoder(Gemma2Layers):
    """The encoder's sizes."""

    config_class = "T5GemmaModuleConfig"

    section = "encoder"
    tie_word_embeddings = sizes.constant(False)


class T5Gemma(Gemma2Layers):
    """Source: arXiv:2504.06225; order of operations: T5GemmaDecoderLayer. The decoder's sizes, and the encoder's."""

    reference = "T5GemmaForConditionalGeneration"
    task_heads = dict.fromkeys(
        ("ForSequenceClassification", "ForTokenClassification"),
        parts.TaskHead(parts.score("score.out_proj"), parts.LABELS, (both_stacks,)),
    )
    section = "decoder"
    unused_keys = ("cross_attention_hidden_size",)

    tie_word_embeddings: sizes.Flag = sizes.hf("/tie_word_embeddings", absent=True)
    encoder: T5GemmaEncoder

    def forward(c, tokens: Data) -> Data:
        source = ops.given("source tokens", "source")
        memory = ops.block(source, "model.encoder.", lambda tokens: encode(c.encoder, tokens), part="encoder")
        table = "model.decoder.embed_tokens.weight"
        x = enlarge(ops.lookup(tokens, table, "other_embedding", c.vocab_size, c.d_model))
        kinds = [(kind, 1) for kind in c.layer_types]
        x = ops.layers(
            x, "model.decoder.layers.{layer}.", kinds, lambda kind, x, m: decoder_layer(c, x, kind, m), reads=(memory,)
        )
        return ops.soft_cap(parts.head(c, c.norm(x, "model.decoder.norm"), table, "lm_head.out_proj"), c.logit_cap)


def encode(c: T5GemmaEncoder, tokens: Data) -> Data:
    x = enlarge(ops.lookup(tokens, "embed_tokens.weight", "embedding", c.vocab_size, c.d_model))
    kinds = [(kind, 1) for kind in c.layer_types]
    return c.norm(ops.layers(x, "layers.{layer}.", kinds, lambda kind, x: encoder_layer(c, x, kind)), "norm")


def encoder_layer(c: Gemma2Layers, x: Data, kind: str) -> Data:
    """A window of a layer of the encoder reaches as far to either side."""
    a = self_attention(c, c.norm(x, "pre_self_attn_layernorm"), kind, cached=False)
    x = x + c.norm(a, "post_self_attn_layernorm")
    return x + c.norm(gelu_mlp(c, c.norm(x, "pre_feedforward_layernorm")), "post_feedforward_layernorm")


def decoder_layer(c: Gemma2Layers, x: Data, kind: str, memory: Data) -> Data:
    a = self_attention(c, c.norm(x, "pre_self_attn_layernorm"), kind, cached=True)
    x = x + c.norm(a, "post_self_attn_layernorm")
    a = cross_attention(c, c.norm(x, "pre_cross_attn_layernorm"), memory)
    x = x + c.norm(a, "post_cross_attn_layernorm")
    return x + c.norm(gelu_mlp(c, c.norm(x, "pre_feedforward_layernorm")), "post_feedforward_layernorm")


def self_attention(c: Gemma2Layers, x: Data, kind: str, *, cached: bool) -> Data:
    reach = window(c, kind)

    def mix(q: Data, k: Data, v: Data) -> Data:
        if cached:
            return ops.attend_causally(q, k, v, window=reach, scale=c.attention_scale, cap=c.score_cap)
        mask = None if reach is None else ops.Window(reach + 1, reach)
        return ops.attend(q, k, v, mask=mask, scale=c.attention_scale, cap=c.score_cap)  # [n, n_heads, d_head]

    return parts.attentions.attention(c, x, "self_attn.", bias=c.attention_bias, mix=mix)


def cross_attention(c: Gemma2Layers, x: Data, memory: Data) -> Data:
    """To the encoder's output, whose size is its own. Nothing is rotated."""

    def mix(q: Data, k: Data, v: Data) -> Data:
        return ops.attend(q, ops.cache(k), ops.cache(v), scale=c.attention_scale, cap=c.score_cap)

    def attend(x: Data, memory: Data) -> Data:
        return parts.attentions.attention(c, x, "", bias=c.attention_bias, memory=memory, mix=mix)

    return ops.block(x, "cross_attn.", attend, reads=(memory,), part="cross_attention")
