"""ProphetNet: an encoder-decoder that predicts several tokens ahead.

Each prediction has its own stream through the same layers.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

MATRICES = ("query_proj", "key_proj", "value_proj", "out_proj")
ROOT, BOTH = "prophetnet.", "tokens and stream"
NORM_EPS = 1e-5  # of LayerNorm


def looks_at_the_encoder(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if not sizes.flag(js, "add_cross_attention", absent=True):
        raise ParamcountError("= false in an encoder-decoder model", where="add_cross_attention", expected="true")


def layers_by_stack(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if "num_hidden_layers" in js:
        raise ParamcountError(
            "is rejected by the reference",
            where="num_hidden_layers",
            expected="num_encoder_layers and num_decoder_layers",
        )


def has_near_buckets(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Half of the buckets of relative positions are for near distances."""
    if c["n_buckets"] < 2:
        found = f"= {c['n_buckets']} leaves no bucket for near distances"
        raise ParamcountError(found, where="num_buckets", expected="an integer of at least 2")


# The streams look one place further than the text.
CONDITIONS = (has_near_buckets, sizes.padding_inside(0, places=3), layers_by_stack)


class ProphetNet(parts.Headed):
    """Source: arXiv:2001.04063, section 3."""

    reference = "ProphetNetForConditionalGeneration"
    table_copies = {"word_embeddings": "encoder.word_embeddings"}
    linear_by_component = False
    conditions = (*CONDITIONS, looks_at_the_encoder)

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_encoder_layers: sizes.Natural = sizes.hf("num_encoder_layers")
    n_decoder_layers: sizes.Natural = sizes.hf("num_decoder_layers")
    n_encoder_heads: sizes.Positive = sizes.hf("num_attention_heads", "num_encoder_attention_heads")
    n_decoder_heads: sizes.Positive = sizes.hf("num_decoder_attention_heads")
    d_encoder_head: sizes.Positive = sizes.derived(sizes.d_model_per("n_encoder_heads"))
    d_decoder_head: sizes.Positive = sizes.derived(sizes.d_model_per("n_decoder_heads"))
    d_encoder_ff: sizes.Natural = sizes.hf()
    d_decoder_ff: sizes.Natural = sizes.hf()
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    n_streams: sizes.Positive = sizes.hf("ngram")
    n_buckets: sizes.Positive = sizes.hf("num_buckets")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    activation = sizes.setting("activation_function")
    farthest = sizes.setting("relative_max_distance")
    padding = sizes.setting("pad_token_id")

    check = sizes.check_stack_heads

    def forward(c, tokens: Data, head: bool = True) -> Data:
        table = ROOT + "word_embeddings.weight" if c.tie_word_embeddings else None

        def encoder(tokens: Data) -> Data:
            x = ops.lookup(
                tokens, f"/{table}" if table else "word_embeddings.weight", "embedding", c.vocab_size, c.d_model
            )
            x = x + look_up_positions(c, tokens, "position_embeddings.weight")
            x = ops.layer_norm(x, "embeddings_layer_norm", NORM_EPS)
            kinds = [("layer", c.n_encoder_layers)]
            return ops.layers(x, "layers.{layer}.", kinds, lambda kind, x: encoder_layer(c, parts.encoder_stack(c), x))

        memory = ops.block(ops.given("source tokens", "source"), ROOT + "encoder.", encoder, part="encoder")
        name, component = ROOT + "decoder.word_embeddings.weight", "embedding" if table else "other_embedding"
        x = ops.lookup(tokens, name, component, c.vocab_size, c.d_model, tied_to=table)
        x = decoder(c, parts.decoder_stack(c), x, tokens, memory)
        return logits(c, x, table) if head else x

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        return (
            ()
            if c.tie_word_embeddings
            else parts.unread_table(c, tokens, ROOT + "word_embeddings.weight", c.vocab_size)
        )


class ProphetNetDecoder(sizes.Sizes):
    """Source: arXiv:2001.04063, section 3."""

    reference = "ProphetNetForCausalLM"
    model_types = ("prophetnet.ProphetNetForCausalLM",)
    table_copies = {"word_embeddings": "decoder.word_embeddings"}
    linear_by_component = False
    conditions = CONDITIONS

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf("num_decoder_layers")
    n_heads: sizes.Positive = sizes.hf("num_decoder_attention_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf("decoder_ffn_dim")
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    n_streams: sizes.Positive = sizes.hf("ngram")
    n_buckets: sizes.Positive = sizes.hf("num_buckets")
    cross_attention: sizes.Flag = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf()

    activation = sizes.setting("activation_function")
    farthest = sizes.setting("relative_max_distance")
    padding = sizes.setting("pad_token_id")

    check = sizes.check_heads_fill

    def forward(c, tokens: Data) -> Data:
        name = ROOT + ("word_embeddings.weight" if c.tie_word_embeddings else "decoder.word_embeddings.weight")
        x = ops.lookup(tokens, name, "embedding", c.vocab_size, c.d_model)
        memory = (parts.source_states(c.d_model),) if c.cross_attention else ()
        x = decoder(c, parts.Stack(c.n_layers, c.n_heads, c.d_head, c.d_ff), x, tokens, *memory)
        return logits(c, x, name if c.tie_word_embeddings else None)

    unreachable: ClassVar[Any] = ProphetNet.unreachable


def logits(c: Any, x: Data, tied_to: str | None) -> Data:
    return ops.linear(x, "lm_head", "lm_head", c.vocab_size, tied_to=tied_to)


def residual(x: Data, sublayer: Callable[[Data], Data], name: str) -> Data:
    return ops.layer_norm(x + sublayer(x), name, NORM_EPS)


def encoder_layer(c: Any, s: parts.Stack, x: Data) -> Data:
    x = residual(x, lambda h: parts.multi_head(s, h, "self_attn.", MATRICES), "self_attn_layer_norm")
    return residual(x, lambda h: feed_forward(c, s, h), "feed_forward_layer_norm")


def feed_forward(c: Any, s: parts.Stack, x: Data) -> Data:
    names = ("feed_forward.intermediate", "feed_forward.output")
    return parts.plain_mlp(x, names, "mlp", s.d_ff, activation=c.activation, bias=True)


def look_up_positions(c: Any, tokens: Data, name: str, *, ahead: int = 0, tied_to: str | None = None) -> Data:
    """Vectors of the positions behind that of the padding token. `ahead`: of those so much later."""
    offset = c.padding if isinstance(c.padding, ops.Unknown) else c.padding + 1 + ahead
    rows, width = c.n_positions, c.d_model
    return ops.lookup_position(tokens, name, rows, width, offset=offset, tied_to=tied_to)


def decoder(c: Any, s: parts.Stack, x: Data, tokens: Data, *memory: Data) -> Data:
    """The stream that predicts the next token, after all layers.

    It starts from a learned vector and the position of the next token, and goes through the layers beside the tokens.
    Streams for tokens further ahead, which training has, start from other vectors; they do not see one another.
    """
    prefix, places = ROOT + "decoder.", ROOT + "decoder.position_embeddings.weight"
    x = x + look_up_positions(c, tokens, places)
    stream = ops.to_every_token(x, prefix + "ngram_embeddings.weight", "other_embedding", c.n_streams, c.d_model)
    stream = stream + look_up_positions(c, tokens, places, ahead=1, tied_to=places)
    both = ops.layer_norm(ops.stack_rows(x, stream, length=BOTH), prefix + "embeddings_layer_norm", NORM_EPS)

    def layer(kind: str, x: Data, *memory: Data) -> Data:
        return decoder_layer(c, s, x, *memory)

    both = ops.layers(both, prefix + "layers.{layer}.", [("layer", s.n_layers)], layer, reads=memory)
    return ops.split_rows(both, 2, "tokens")[1]


def decoder_layer(c: Any, s: parts.Stack, x: Data, *memory: Data) -> Data:
    x = residual(x, lambda h: two_stream_attention(c, s, h), "self_attn_layer_norm")
    for source in memory:

        def cross(x: Data, m: Data) -> Data:
            return residual(
                x, lambda h: parts.multi_head(s, h, "cross_attn.", MATRICES, memory=m), "cross_attn_layer_norm"
            )

        x = parts.crossing(x, "", cross, source)
    return residual(x, lambda h: feed_forward(c, s, h), "feed_forward_layer_norm")


def two_stream_attention(c: Any, s: parts.Stack, x: Data) -> Data:
    """Tokens see earlier tokens and themselves; in the stream, each row sees these and its own key. A bias on the
    scores depends on the query and on the bucket of the distance.

    Of several heads, the reference gives the stream's biases to other tokens and heads (the order of axes in
    get_predict_relative_pos_embeddings); this follows the paper.
    """
    heads = (s.n_heads, s.d_head)
    q, k, v = (ops.linear(x, f"self_attn.{name}", f"qkv.{name[0]}", heads, bias=True) for name in MATRICES[:3])
    relative = ops.linear(x, "self_attn.relative_pos_embeddings", "position", (c.n_buckets, s.n_heads), bias=True)
    (q, of_stream), (k, own_k), (v, own_v), (by_bucket, of_stream_by_bucket) = (
        ops.split_rows(y, 2, "tokens") for y in (q, k, v, relative)
    )
    near, ahead = (ops.bucket_distances(q, c.n_buckets, c.farthest, causal=True, ahead=n) for n in (0, 1))
    k, v = ops.cache(k), ops.cache(v)  # [m, n_heads, d_head]
    a = ops.attend(q, k, v, ops.select_by_pair(near, by_bucket, axis=1), mask=ops.Causal())  # [n, n_heads, d_head]
    own = ops.own_scores(of_stream, own_k, ops.select_part(of_stream_by_bucket, 0))  # [n_heads, n, 1]
    later = ops.add_bias(ops.scores(of_stream, k), ops.select_by_pair(ahead, of_stream_by_bucket, axis=1))
    weights = ops.softmax(later, own, mask=ops.Causal())  # [n_heads, n, m + 1]
    b = ops.add_own(ops.weighted_sum(weights, v), weights, own_v)  # [n, n_heads, d_head]
    y = ops.stack_rows(a, b, length=BOTH)
    return ops.linear(y, "self_attn.out_proj", "output_projection", x.shape[-1], bias=True)
