"""XLNet: attention over the text and its cached past with relative positions.

The positions are sinusoids with a key matrix of their own.
"""

from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Linear, Weight, add_vector, layers, lookup, scale_by_root, score_keys
from paramcount.flow.operations.attention import attend
from paramcount.flow.operations.positions import distance_sinusoids
from paramcount.flow.operations.relations import compare_segments, index_distances
from paramcount.flow.operations.shapes import given, select, select_by_pair, to_every_token, to_memory
from paramcount.parts import task_heads as heads
from paramcount.parts.decoders import head, use_layer_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.tasks import OF_D_MODEL, SPAN_OF_LABELS, SUMMARISED, TOKENS, TaskHead
from paramcount.sizes import ABSENT, ConfigJson, FieldValues, Flag, Natural, Positive, Sizes, derived, hf, setting
from paramcount.sizes.conditions import one_of
from paramcount.sizes.rules import check_even, check_heads_fill

TABLE = "transformer.word_embedding.weight"


def without_limit(js: ConfigJson, c: FieldValues) -> None:
    if "max_position_embeddings" in js:
        raise ParamcountError(
            "is set, but XLNet has no position limit", where="max_position_embeddings", expected="no such key"
        )


def kept_tokens(js: ConfigJson, c: FieldValues) -> int | None:
    """How many tokens the cache keeps; 0 and null stand for all."""
    n = js.get("mem_len", 512)
    if n is not None and (type(n) is not int or n < 0):
        raise ParamcountError(f"= {describe_value(n)}", where="mem_len", expected="null or a non-negative integer")
    return n or None


class XLNet(Sizes):
    """Source: arXiv:1906.08237, section 2; relative positions arXiv:1901.02860, section 3.3."""

    is_causal: ClassVar[Any] = True  # its attention has a mask of its own

    reference = "XLNetLMHeadModel"
    task_heads = {
        "ForSequenceClassification": TaskHead(
            heads.summarise_then("logits_proj", lambda c: c.n_labels), SUMMARISED, OF_D_MODEL
        ),
        "ForMultipleChoice": TaskHead(heads.summarise_then("logits_proj", lambda c: 1), SUMMARISED, OF_D_MODEL),
        "ForTokenClassification": TOKENS,
        "ForQuestionAnsweringSimple": SPAN_OF_LABELS,
        "ForQuestionAnswering": TaskHead(heads.find_span_in_beams(""), {}),
    }
    conditions = (without_limit, one_of("attn_type", ("bi", "uni"), "bi"))

    vocab_size: Positive = hf("n_token", "vocab_size")
    d_model: Positive = hf("hidden_size", "d_model")
    n_layers: Natural = hf("num_hidden_layers", "n_layer")
    n_heads: Positive = hf("num_attention_heads", "n_head")
    # worked out before an alias overrides the keys that it is worked out from
    d_head: Positive = hf("d_head", absent=lambda js, c: js.get("d_model", 1024) // js.get("n_head", 16), null=ABSENT)
    d_ff: Natural = hf("d_inner")
    memory_length: Positive | None = derived(kept_tokens)
    causal: Flag = derived(lambda js, c: js.get("attn_type") == "uni")
    tie_word_embeddings: Flag = hf()

    activation = setting("ff_activation", default="gelu")
    norm_eps = setting("layer_norm_eps", default=1e-12)
    clamp = setting("clamp_len", default=-1)
    norm = use_layer_norm

    def forward(c, tokens: Data) -> Data:
        """What is known of the text, or, in place of tokens that are to be predicted, one learned vector. In training,
        that vector begins a second stream through the same weights instead."""
        x = lookup(tokens, TABLE, "embedding", c.vocab_size, c.d_model)
        hidden = to_every_token(x, "transformer.mask_emb", "other_embedding", 1, 1, c.d_model)
        x = select(given("predicted tokens", "tokens", default=0), x, hidden)
        same = compare_segments(given("segments", "tokens", default=0))
        kinds = [("layer", c.n_layers)]
        x = layers(x, "transformer.layer.{layer}.", kinds, lambda kind, x, same: c.layer(x, same), reads=(same,))
        return head(c, x, TABLE, "lm_loss", bias=True)

    def layer(c, x: Data, same: Data) -> Data:
        x = c.norm(x + c.attention(x, same), "rel_attn.layer_norm")
        names = ("ff.layer_1", "ff.layer_2")
        y = plain_mlp(x, names, "mlp", c.d_ff, activation=c.activation, bias=True)
        return c.norm(x + y, "ff.layer_norm")

    def attention(c, x: Data, same: Data) -> Data:
        """The scores are the sum of three terms: content, relative position and relative segment."""
        seen = to_memory(x)
        q, k, v = (c.project(y, name) for name, y in (("q", x), ("k", seen), ("v", seen)))
        r = c.project(distance_sinusoids(seen, causal=c.causal, farthest=c.clamp), "r", "qkv.k")
        at_content, at_distance, at_segment = (c.add_bias(q, name) for name in "wrs")
        segments = Weight("rel_attn.seg_embed", "other_embedding", (2, c.n_heads, c.d_head))
        by_distance = select_by_pair(index_distances(x, seen), score_keys(at_distance, r), axis=2)
        by_segment = select_by_pair(same, score_keys(at_segment, segments), axis=2)
        kept = None if c.memory_length is None else c.memory_length + 1  # the newest is not among those that are kept
        biases = (by_distance, by_segment)
        a = attend(at_content, k, v, *biases, cached=(seen,), causal=c.causal, scale=1.0, kept=kept)
        o = Weight("rel_attn.o", "output_projection", (c.d_model, c.n_heads, c.d_head))
        return Data(Linear(), (a,), x.shape, (o,))

    def project(c, x: Data, name: str, component: str | None = None) -> Data:
        """A matrix stored [in, heads, d_head]."""
        weight = Weight(f"rel_attn.{name}", component or f"qkv.{name}", (c.d_model, c.n_heads, c.d_head))
        return Data(Linear(transposed=True), (x,), (*x.shape[:1], c.n_heads, c.d_head), (weight,))

    def add_bias(c, q: Data, name: str) -> Data:
        """A query for one of the terms, divided by √d_head, which the scores are."""
        biased = add_vector(q, f"rel_attn.r_{name}_bias", "qkv.q", c.n_heads, c.d_head)
        return scale_by_root(biased, c.d_head, "divided by √d_head", inverse=True)

    def check(c) -> None:
        check_heads_fill(c)
        check_even(c, "d_model")
