"""XLNet: attention over the text and its cached past with relative positions.

The positions are sinusoids with a key matrix of their own.
"""

from typing import Any

from paramcount.errors import ParamcountError
from paramcount.flow import Data, Weight, activate, attend, elementwise, layers, lookup, norm
from paramcount.parts.decoders import head
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, ConfigJson, FieldValues, Flag, Positive, Sizes, derived, hf
from paramcount.sizes.conditions import one_of
from paramcount.sizes.rules import check_even, check_heads_fill


def without_limit(js: ConfigJson, c: FieldValues) -> None:
    if "max_position_embeddings" in js:
        raise ParamcountError(
            "is set, but XLNet has no position limit", where="max_position_embeddings", expected="no such key"
        )


class XLNet(Sizes):
    """Source: arXiv:1906.08237, section 2; relative positions arXiv:1901.02860, section 3.3."""

    reference = "XLNetLMHeadModel"
    conditions = (without_limit, one_of("attn_type", ("bi", "uni"), "bi"))

    vocab_size: Positive = hf("n_token", "vocab_size", absent=32000)
    d_model: Positive = hf("hidden_size", "d_model", absent=1024)
    n_layers: Positive = hf("num_hidden_layers", "n_layer", absent=24)
    n_heads: Positive = hf("num_attention_heads", "n_head", absent=16)
    # worked out before an alias overrides the keys that it is worked out from
    d_head: Positive = hf("d_head", absent=lambda js, c: js.get("d_model", 1024) // js.get("n_head", 16), null=ABSENT)
    d_ff: Positive = hf("d_inner", absent=4096)
    causal: Flag = derived(lambda js, c: js.get("attn_type") == "uni")
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        """What is known of the text.

        What is to be predicted starts from one learned vector in place of the tokens, and runs as a second stream
        through the same weights.
        """
        x = lookup(tokens, "transformer.word_embedding.weight", "embedding", c.vocab_size, c.d_model)
        x = elementwise(x, "hide what is predicted", "transformer.mask_emb", "other_embedding", 1, 1, c.d_model)
        x = layers(x, "transformer.layer.{layer}.", [("layer", c.n_layers)], lambda kind, x: layer(c, x))
        return head(c, x, "transformer.word_embedding.weight", "lm_loss", bias=True)

    def check(c) -> None:
        check_heads_fill(c)
        check_even(c, "d_model")


def layer(c: Any, x: Data) -> Data:
    x = norm(x + attention(c, x), "rel_attn.layer_norm", bias=True)
    return norm(x + plain_mlp(x, ("ff.layer_1", "ff.layer_2"), "mlp", c.d_ff, bias=True), "ff.layer_norm", bias=True)


def attention(c: Any, x: Data) -> Data:
    """Attention whose scores are the sum of three terms: content, relative position and relative segment."""
    seen = activate(x, "remember")  # vectors of earlier tokens are kept as they are
    q, k, v = (project(c, read, name, f"qkv.{name}") for name, read in (("q", x), ("k", seen), ("v", seen)))
    distances = project(c, Data("distances", (seen,), seen.shape), "r", "qkv.k")
    for_token = elementwise(q, "add bias", "rel_attn.r_w_bias", "qkv.q", c.n_heads, c.d_head)
    for_distance = elementwise(q, "add bias", "rel_attn.r_r_bias", "qkv.q", c.n_heads, c.d_head)
    for_segment = elementwise(q, "add bias", "rel_attn.r_s_bias", "qkv.q", c.n_heads, c.d_head)
    segments = elementwise(for_segment, "same segment", "rel_attn.seg_embed", "other_embedding", 2, c.n_heads, c.d_head)
    biased = Data("sum of scores", (for_token, for_distance, distances, segments), q.shape)
    a = attend(biased, k, v, cached=(seen,), causal=c.causal)
    return Data("linear", (a,), x.shape, (Weight("rel_attn.o", "output_projection", (c.d_model, c.n_heads, c.d_head)),))


def project(c: Any, x: Data, name: str, component: str) -> Data:
    """A matrix stored [in, heads, width of a head]."""
    return Data(
        "linear",
        (x,),
        (*x.shape[:1], c.n_heads, c.d_head),
        (Weight(f"rel_attn.{name}", component, (c.d_model, c.n_heads, c.d_head)),),
    )
