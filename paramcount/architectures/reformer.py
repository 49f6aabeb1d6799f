"""Reformer: two streams that layers read in turns, attention inside chunks or among tokens with equal hashes."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, describe_value

KINDS = ("local", "lsh")
LAYER = "reformer.encoder.layers.{layer}."


def kinds(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """The attention of each layer. If all that are named are equal, there may be more or fewer layers."""
    named: tuple[object, ...] = tuple(js.get("attn_layers", ("local", "lsh") * 3))
    for i, kind in enumerate(named):
        if kind not in KINDS:
            raise ParamcountError(f"= {describe_value(kind)}", where=f"attn_layers.{i}", choices=KINDS)
    if not named:
        raise ParamcountError("is empty", where="attn_layers", choices=KINDS)
    n = js.get("num_hidden_layers", len(named))
    if type(n) is not int or n < 1 or (len(set(named)) > 1 and n > len(named)):
        expected = "a positive integer" if len(set(named)) == 1 else f"1 to {len(named)}, as attn_layers"
        raise sizes.make_value_error(n, "num_hidden_layers", expected)
    words = tuple(str(kind) for kind in named)
    return words[:n] if len(set(words)) > 1 else words[:1] * n


def class_fits(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The class with the head of a causal model is for decoders alone, the one of a masked model for encoders."""
    named = (*(js.get("architectures") or ()), "ReformerForMaskedLM")[0]
    wanted = {"ReformerModelWithLMHead": True, "ReformerForMaskedLM": False}.get(named)
    if wanted is not None and c["is_decoder"] != wanted:
        raise ParamcountError(
            f"= {describe_value(c['is_decoder'])}, but the class is {named}",
            where="is_decoder",
            expected="true" if wanted else "false",
        )
    for kind in KINDS:
        key = f"{kind}_num_chunks_after"
        if c["is_decoder"] and kind in js.get("attn_layers", KINDS) and js.get(key, 0) != 0:
            raise ParamcountError(f"= {describe_value(js[key])} in a decoder", where=key, expected="0")


def chunks_have_lengths(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    for kind in KINDS:
        key = f"{kind}_attn_chunk_length"
        length = js.get(key, 64)
        if kind in js.get("attn_layers", KINDS) and (type(length) is not int or length < 1):
            raise sizes.make_value_error(length, key, "a positive integer")


class Reformer(parts.Headed):
    """Source: arXiv:2001.04451, sections 2 and 3; ReformerModelWithLMHead and ReformerForMaskedLM."""

    is_causal: ClassVar[Any] = True  # its attention has a mask of its own

    reference = "ReformerForMaskedLM"
    equivalent_classes = ("ReformerModelWithLMHead",)
    base_model = "ReformerModel"
    conditions = (class_fits, chunks_have_lengths)

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    layer_types: sizes.Words = sizes.derived(kinds)
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf("attention_head_size")
    d_ff: sizes.Natural = sizes.hf("feed_forward_size")
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    axial: sizes.Flag = sizes.hf("axial_pos_embds")
    axial_shape: sizes.Widths = sizes.hf("axial_pos_shape")
    axial_dims: sizes.Widths = sizes.hf("axial_pos_embds_dim")
    is_decoder: sizes.Flag = sizes.hf()

    activation = sizes.setting("hidden_act")
    norm_eps = sizes.setting("layer_norm_eps")
    local_chunk = sizes.setting("local_attn_chunk_length")
    hashed_chunk = sizes.setting("lsh_attn_chunk_length")

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def build(tokens: Data) -> Data:
            x = c.embed(tokens)
            stack = [(kind, 1) for kind in c.layer_types]
            x = ops.layers(ops.join(x, x), LAYER, stack, lambda kind, x: c.layer(kind, x))
            x = ops.layer_norm(x, "reformer.encoder.layer_norm", c.norm_eps)
            return ops.linear(x, "lm_head.decoder", "lm_head", c.vocab_size) if head else x

        return ops.block(tokens, "", build, part="decoder" if c.is_decoder else "encoder")

    def embed(c, tokens: Data) -> Data:
        """Positions are rows of one table, or a row of a grid beside a column of it."""
        names = "reformer.embeddings."
        x = ops.lookup(tokens, names + "word_embeddings.weight", "embedding", c.vocab_size, c.d_model)
        if not c.axial:
            table = (c.n_positions, c.d_model)
            name = names + "position_embeddings.embedding.weight"
            return x + ops.lookup_position(tokens, name, *table)
        return x + ops.axial_positions(tokens, names + "position_embeddings.weights", c.axial_shape, c.axial_dims)

    def layer(c, kind: str, x: Data) -> Data:
        """Attention reads the second stream and adds to the first, the MLP reads the first and adds to the second.
        Source: section 3.
        """
        first, second = ops.split(x, c.d_model, c.d_model)
        first = first + c.attend(kind, ops.layer_norm(second, "attention.layer_norm", c.norm_eps))
        h = ops.layer_norm(first, "feed_forward.layer_norm", c.norm_eps)
        names = ("feed_forward.dense.dense", "feed_forward.output.dense")
        return ops.join(first, second + parts.plain_mlp(h, names, "mlp", c.d_ff, activation=c.activation, bias=True))

    def attend(c, kind: str, x: Data) -> Data:
        """As long as a text is one chunk, all tokens see one another. Of equal queries and keys, a token sees its own
        only if it sees no other. Source: section 2.
        """
        heads, name = (c.n_heads, c.d_head), "attention.self_attention."
        # The vectors of earlier tokens, from which keys and values are computed anew
        kept = ops.cache(x) if c.is_decoder else x
        if kind == "local":
            q = ops.linear(x, name + "query", "qkv.q", heads)
            k, longest = ops.linear(kept, name + "key", "qkv.k", heads), c.local_chunk
        else:
            q = ops.linear(x, name + "query_key", "qkv.q", heads)
            k = ops.linear(kept, name + "query_key", "qkv.q", heads, tied_to=LAYER + name + "query_key.weight")
            k, longest = ops.plain_norm(k, "rms", 1e-6), c.hashed_chunk
        v = ops.linear(kept, name + "value", "qkv.v", heads)
        s = ops.scores(q, k, longest=longest)  # [n_heads, n, m]
        s = ops.put_itself_last(s) if kind == "lsh" else s
        a = ops.weighted_sum(ops.softmax(s, mask=ops.Causal() if c.is_decoder else None), v)  # [n, n_heads, d_head]
        return ops.linear(a, "attention.output.dense", "output_projection", c.d_model)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        bias = ops.add_vector(tokens, "lm_head.bias", "lm_head", c.vocab_size)
        return (ops.Unreachable(bias, "the LM head adds no bias", of_lm_head=True),)

    def check(c: Any) -> None:
        if not c.axial:
            return
        if len(c.axial_shape) != 2:
            n = len(c.axial_shape)
            raise ParamcountError(f"has {n} values", where=FieldName("axial_shape"), expected="2")
        if not 1 <= len(c.axial_dims) <= 2 or sum(c.axial_dims) != c.d_model:
            found = f"= {list(c.axial_dims)} does not sum to " + FieldName("d_model") + f" = {c.d_model}"
            raise ParamcountError(found, where=FieldName("axial_dims"), expected="1 or 2 values")
