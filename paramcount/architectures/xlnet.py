"""XLNet: attention over the text and its cached past with relative positions.

The positions are sinusoids with a key matrix of their own.
"""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

TABLE = "transformer.word_embedding.weight"


def without_limit(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if "max_position_embeddings" in js:
        raise ParamcountError(
            "is set, but XLNet has no position limit", where="max_position_embeddings", expected="no such key"
        )


def kept_tokens(js: sizes.ConfigJson, c: sizes.FieldValues) -> int | None:
    """How many tokens the cache keeps; 0 and null stand for all."""
    n = js.get("mem_len", 512)
    if n is not None and (type(n) is not int or n < 0):
        raise sizes.make_value_error(n, "mem_len", "null or a non-negative integer")
    return n or None


class XLNet(sizes.Sizes):
    """Source: arXiv:1906.08237, section 2; relative positions arXiv:1901.02860, section 3.3."""

    is_causal: ClassVar[Any] = True  # its attention has a mask of its own

    reference = "XLNetLMHeadModel"
    task_heads = {
        "ForSequenceClassification": parts.TaskHead(
            parts.task_heads.summarise_then("logits_proj"), parts.SUMMARISED, parts.OF_D_MODEL
        ),
        "ForMultipleChoice": parts.TaskHead(
            parts.task_heads.summarise_then("logits_proj", 1), parts.SUMMARISED, parts.OF_D_MODEL
        ),
        "ForTokenClassification": parts.TOKENS,
        "ForQuestionAnsweringSimple": parts.SPAN_OF_LABELS,
        "ForQuestionAnswering": parts.TaskHead(parts.task_heads.find_span_in_beams(""), {}),
    }
    conditions = (without_limit, sizes.one_of("attn_type", ("bi", "uni"), "bi"))

    vocab_size: sizes.Positive = sizes.hf("n_token", "vocab_size")
    d_model: sizes.Positive = sizes.hf("hidden_size", "d_model")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layer")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_head")
    # worked out before an alias overrides the keys that it is worked out from
    d_head: sizes.Positive = sizes.hf(
        "d_head", absent=lambda js, c: js.get("d_model", 1024) // js.get("n_head", 16), null=sizes.ABSENT
    )
    d_ff: sizes.Natural = sizes.hf("d_inner")
    memory_length: sizes.Positive | None = sizes.derived(kept_tokens)
    causal: sizes.Flag = sizes.derived(lambda js, c: js.get("attn_type") == "uni")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    activation = sizes.setting("ff_activation")
    norm_eps = sizes.setting("layer_norm_eps")
    clamp = sizes.setting("clamp_len")
    norm = parts.use_layer_norm

    def forward(c, tokens: Data) -> Data:
        """What is known of the text, or, in place of tokens that are to be predicted, one learned vector. In training,
        that vector begins a second stream through the same weights instead."""
        x = ops.lookup(tokens, TABLE, "embedding", c.vocab_size, c.d_model)
        hidden = ops.to_every_token(x, "transformer.mask_emb", "other_embedding", 1, 1, c.d_model)
        x = ops.select(ops.given("predicted tokens", "tokens", default=0), x, hidden)
        same = ops.compare_segments(ops.given("segments", "tokens", default=0))
        kinds = [("layer", c.n_layers)]
        x = ops.layers(x, "transformer.layer.{layer}.", kinds, lambda kind, x, same: c.layer(x, same), reads=(same,))
        return parts.head(c, x, TABLE, "lm_loss", bias=True)

    def layer(c, x: Data, same: Data) -> Data:
        x = c.norm(x + c.attention(x, same), "rel_attn.layer_norm")
        names = ("ff.layer_1", "ff.layer_2")
        y = parts.plain_mlp(x, names, "mlp", c.d_ff, activation=c.activation, bias=True)
        return c.norm(x + y, "ff.layer_norm")

    def attention(c, x: Data, same: Data) -> Data:
        """The scores are the sum of three terms: content, relative position and relative segment."""
        # The newest token is not among those that are kept
        kept = ops.Mask() if c.memory_length is None else ops.Window(c.memory_length + 1)
        seen = ops.cache(ops.to_memory(x), kept)  # [m, d_model]
        q, k, v = (c.project(y, name) for name, y in (("q", x), ("k", seen), ("v", seen)))
        r = c.project(ops.distance_sinusoids(seen, causal=c.causal, farthest=c.clamp), "r", "qkv.k")
        at_content, at_distance, at_segment = (c.add_bias(q, name) for name in "wrs")
        segments = ops.Weight("rel_attn.seg_embed", "other_embedding", (2, c.n_heads, c.d_head))
        by_distance = ops.select_by_pair(ops.index_distances(x, seen), ops.score_keys(at_distance, r), axis=2)
        by_segment = ops.select_by_pair(same, ops.score_keys(at_segment, segments), axis=2)
        mask = ops.Causal() if c.causal else None
        a = ops.attend(at_content, k, v, by_distance, by_segment, mask=mask, scale=1.0)  # [n, n_heads, d_head]
        o = ops.Weight("rel_attn.o", "output_projection", (c.d_model, c.n_heads, c.d_head))
        return Data(ops.Linear(), (a,), x.shape, (o,))

    def project(c, x: Data, name: str, component: str | None = None) -> Data:
        """A matrix stored [in, heads, d_head]."""
        weight = ops.Weight(f"rel_attn.{name}", component or f"qkv.{name}", (c.d_model, c.n_heads, c.d_head))
        return Data(ops.Linear(transposed=True), (x,), (*x.shape[:1], c.n_heads, c.d_head), (weight,))

    def add_bias(c, q: Data, name: str) -> Data:
        """A query for one of the terms, divided by √d_head, which the scores are."""
        biased = ops.add_vector(q, f"rel_attn.r_{name}_bias", "qkv.q", c.n_heads, c.d_head)
        return ops.scale_by_root(biased, c.d_head, "divided by √d_head", inverse=True)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_even(c, "d_model")
