"""MobileBERT: narrow layers between wide ones, several MLPs in each, and vectors in place of norms.

A token's embedding is joined with those of its neighbours.
"""

from typing import Any

from paramcount.architectures.bert import POOLED
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

LAYERS = "mobilebert.encoder.layer.{layer}."
TABLE = "mobilebert.embeddings.word_embeddings.weight"
MOST_MLPS = 256  # each is walked
OWN_EPS = 1e-5  # of the norms that layer_norm_eps is not for


def mlps_in_front(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The MLPs of a layer in front of its last one."""
    n = js.get("num_feedforward_networks", 4)
    if type(n) is not int or not 1 <= n <= MOST_MLPS:
        raise sizes.make_value_error(n, "num_feedforward_networks", f"an integer from 1 to {MOST_MLPS}")
    return tuple(range(n - 1))


def size_inside(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The size of the vectors that attention and MLPs read.

    It decides d_head, which is read before the two sizes that it depends on.
    """
    narrowed = c["narrowed"] if "narrowed" in c else sizes.flag(js, "use_bottleneck", absent=True)
    narrow = c["d_narrow"] if "d_narrow" in c else js.get("intra_bottleneck_size", 128)
    size = narrow if narrowed else c["d_model"]
    if type(size) is not int or size < 1:
        raise sizes.make_value_error(size, "intra_bottleneck_size", "a positive integer")
    return size


class MobileBert(parts.MaskedEncoder):
    """Source: arXiv:2004.02984, section 3; MobileBertLayer of the reference."""

    reference = "MobileBertForMaskedLM"
    task_heads = "BERT_SENTENCES"
    conditions = (sizes.padding_inside(0), sizes.one_of("normalization_type", ("no_norm", "layer_norm"), "no_norm"))
    prefix = "mobilebert."
    linear_heads = ("cls.predictions.dense.weight",)
    unused_keys = ("true_hidden_size",)

    d_embedding: sizes.Positive = sizes.hf()
    embeddings_projected: sizes.Flag = sizes.derived(lambda js, c: c["d_embedding"] != c["d_model"])
    n_token_types: sizes.Positive = sizes.hf()
    trigrams: sizes.Flag = sizes.hf("trigram_input")
    narrowed: sizes.Flag = sizes.hf("use_bottleneck")
    d_narrow: sizes.Positive = sizes.hf("intra_bottleneck_size")
    d_inner: sizes.Positive = sizes.derived(size_inside)
    d_head: sizes.Positive = sizes.derived(lambda js, c: size_inside(js, c) // c["n_heads"])
    attends_to_narrow: sizes.Flag = sizes.hf("use_bottleneck_attention")
    shares_narrow: sizes.Flag = sizes.hf("key_query_shared_bottleneck")
    mlps_in_front: sizes.Indices = sizes.derived(mlps_in_front)
    layer_norms: sizes.Flag = sizes.derived(lambda js, c: js.get("normalization_type", "no_norm") == "layer_norm")
    pooled: sizes.Flag = sizes.derived(sizes.class_ends(*POOLED))
    pooler_matrix: sizes.Flag = sizes.derived(lambda js, c: sizes.flag(js, "classifier_activation", absent=True))
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x, names = ops.lookup(tokens, TABLE, "embedding", c.vocab_size, c.d_embedding), "mobilebert.embeddings."
        if c.trigrams:
            x = ops.join(ops.join(ops.neighbour(x, behind=True), x), ops.neighbour(x, behind=False))
        if c.trigrams or c.embeddings_projected:
            x = ops.linear(x, names + "embedding_transformation", "other", c.d_model, bias=True)
        name, table = names + "position_embeddings.weight", names + "token_type_embeddings.weight"
        x = x + ops.lookup_position(tokens, name, c.n_positions, c.d_model)
        x = x + ops.lookup(reads[0], table, "other_embedding", c.n_token_types, c.d_model)
        return c.norm(x, names + "LayerNorm", OWN_EPS)

    def layer(c, x: Data) -> Data:
        narrow = c.narrow(x, "input") if c.narrowed else x
        h = c.norm(c.attend(x, narrow) + narrow, "attention.output.LayerNorm")
        for i in c.mlps_in_front:
            h = c.norm(c.mlp(h, f"ffn.{i}.") + h, f"ffn.{i}.output.LayerNorm")
        h = c.norm(c.mlp(h, "") + h, "output.LayerNorm", OWN_EPS)
        if not c.narrowed:
            return h
        y = ops.linear(h, "output.bottleneck.dense", "other", c.d_model, bias=True)
        return c.norm(y + x, "output.bottleneck.LayerNorm")

    def narrow(c, x: Data, name: str) -> Data:
        y = ops.linear(x, f"bottleneck.{name}.dense", "other", c.d_narrow, bias=True)
        return c.norm(y, f"bottleneck.{name}.LayerNorm")

    def attend(c, x: Data, narrow: Data) -> Data:
        """Of wide vectors, or of narrow ones, which may be others than those that go through the MLPs."""
        if not c.narrowed or c.attends_to_narrow:
            compared = values = narrow
        else:
            compared, values = c.narrow(x, "attention") if c.shares_narrow else x, x
        heads, name = (c.n_heads, c.d_head), "attention.self."
        q = ops.linear(compared, name + "query", "qkv.q", heads, bias=True)
        k = ops.linear(compared, name + "key", "qkv.k", heads, bias=True)
        v = ops.linear(values, name + "value", "qkv.v", heads, bias=True)
        return ops.linear(ops.attend(q, k, v), "attention.output.dense", "output_projection", c.d_inner, bias=True)

    def mlp(c, x: Data, prefix: str) -> Data:
        names = (prefix + "intermediate.dense", prefix + "output.dense")
        return parts.plain_mlp(x, names, "mlp", c.d_ff, activation=c.activation, bias=True)

    def norm(c, x: Data, name: str, eps: Any = None) -> Data:
        """A layer norm, or a scale and a bias alone."""
        if c.layer_norms:
            return ops.layer_norm(x, name, c.norm_eps if eps is None else eps)
        y = ops.multiply_vector(x, name + ".weight", "norm", x.shape[-1])
        return ops.add_vector(y, name + ".bias", "norm", x.shape[-1])

    def encode(c, x: Data, *reads: Data) -> Data:
        x = ops.layers(x, LAYERS, [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        if c.pooler_matrix and c.pooled:
            return parts.first_pooled(x, "mobilebert.pooler.dense")
        return ops.bundle(x, ops.first_token(x)) if c.pooled else x

    def head(c, x: Data) -> Data:
        """The rows of the token embedding are as long as vectors in front of the layers: a further matrix reads the
        rest.
        """
        names = "cls.predictions."
        h = ops.activate(ops.linear(x, names + "transform.dense", "other", c.d_model, bias=True), c.activation)
        h = ops.layer_norm(h, names + "transform.LayerNorm", c.norm_eps)
        tied_to = TABLE if c.tie_word_embeddings else None
        options: Any = {"tied_to": tied_to, "bias": not c.tie_word_embeddings}
        if not c.embeddings_projected:
            logits = ops.linear(h, names + "decoder", "lm_head", c.vocab_size, **options)
        else:
            first, rest = ops.split(h, c.d_embedding, c.d_model - c.d_embedding)
            logits = ops.linear(first, names + "decoder", "lm_head", c.vocab_size, **options)
            logits = logits + ops.linear(rest, names + "dense", "lm_head", c.vocab_size, transposed=True)
        return ops.add_vector(logits, names + "bias", "lm_head", c.vocab_size) if tied_to else logits

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        found = parts.second_bias(c, tokens, "cls.predictions.bias")
        x = ops.given("vectors", "tokens", c.d_model)
        if not (c.trigrams or c.embeddings_projected):
            unread = ops.linear(x, "mobilebert.embeddings.embedding_transformation", "other", c.d_model, bias=True)
            found = (*found, ops.Unreachable(unread, "embeddings have the size of the layers' vectors"))
        if c.narrowed and c.attends_to_narrow and c.shares_narrow:
            kinds = [("layer", c.n_layers)]
            unread = ops.layers(x, LAYERS, kinds, lambda kind, x: ops.bundle(x, c.narrow(x, "attention")))
            found = (*found, ops.Unreachable(unread, "queries and keys read the vectors that go through the MLPs"))
        return found

    def check(c) -> None:
        sizes.check_projection(c)
        read = "d_narrow" if c.narrowed else "d_model"
        if c.d_inner != getattr(c, read):
            unequal = f"= {c.d_inner} for " + FieldName(read) + f" = {getattr(c, read)}"
            raise ParamcountError(unequal, where=FieldName("d_inner"), expected=f"{getattr(c, read)}")
        if c.n_heads * c.d_head != c.d_inner:
            uneven = f"= {c.n_heads} does not divide {c.d_inner}"
            raise ParamcountError(uneven, where=FieldName("n_heads"), expected=f"a divisor of {c.d_inner}")
        if c.d_embedding > c.d_model:
            more = f"= {c.d_embedding} is more than " + FieldName("d_model")
            raise ParamcountError(more, where=FieldName("d_embedding"), expected=f"at most {c.d_model}")
        if c.narrowed and not (c.attends_to_narrow or c.shares_narrow) and c.d_narrow != c.d_model:
            differs = f"= {c.d_narrow}, but queries read vectors of {c.d_model}"
            raise ParamcountError(differs, where=FieldName("d_narrow"), expected=f"{c.d_model}")
