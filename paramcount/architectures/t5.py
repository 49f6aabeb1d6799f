"""T5: an encoder and a decoder without biases, each with one table of relative positions.

The first layer owns the table and all layers read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, activate, block, given, layers, lookup, norm
from paramcount.parts.attentions import relative
from paramcount.parts.classic import crossing, multi_head
from paramcount.parts.decoders import head
from paramcount.parts.feed_forward import gated_mlp, plain_mlp
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, derived, hf
from paramcount.sizes.conditions import buckets_reach

QKVO = ("q", "k", "v", "o")
KEYS = ("relative_attention_num_buckets", "relative_attention_max_distance")
BUCKETS = (buckets_reach(*KEYS, 128, one_sided=True),)
BUCKETS_OF_AN_ENCODER = (buckets_reach(*KEYS, 128, one_sided=False),)


def gated(js: Mapping[str, Any], c: Mapping[str, Any], absent: str = "relu") -> bool:
    word = js.get("feed_forward_proj", absent)
    first, *rest = word.split("-") if isinstance(word, str) else ("", "", "")
    if len(rest) > 1 or (rest and first != "gated"):
        raise ParamcountError(
            f"= {describe_value(word)}",
            where="feed_forward_proj",
            expected="an activation, or gated- and an activation",
        )
    return bool(first == "gated")


def decoder_layers(absent: int) -> Any:
    """As many as the encoder has where the config says nothing else.

    What counts is num_layers, also where an alias overrides it.
    """
    return lambda js, c: js.get("num_layers", absent)


class T5(Sizes):
    """Source: arXiv:1910.10683, section 2.1; gated feed-forward arXiv:2002.05202.
    The reference ties the head and the three tables whatever config.json says: tie_word_embeddings = false (T5 1.1,
    Flan-T5) only keeps it from scaling what the head reads. Their released files hold a head of its own.
    """

    reference: ClassVar[str] = "T5ForConditionalGeneration"
    conditions: ClassVar[tuple[Condition, ...]] = BUCKETS
    float32_if_float16: ClassVar[tuple[str, ...]] = ("wo",)

    vocab_size: Positive = hf(absent=32128)
    d_model: Positive = hf("hidden_size", "d_model", absent=512)
    n_layers: Positive = hf("num_hidden_layers", "num_layers", absent=6)
    n_decoder_layers: Positive = hf("num_decoder_layers", absent=decoder_layers(6), null=ABSENT)
    n_heads: Positive = hf("num_attention_heads", "num_heads", absent=8)
    d_head: Positive = hf("head_dim", "d_kv", absent=64)
    d_ff: Positive = hf("d_ff", absent=2048)
    gated: Flag = derived(gated)
    n_buckets: Positive = hf("relative_attention_num_buckets", absent=32)
    scaled: Flag = derived(lambda js, c: js.get("tie_word_embeddings") is not False)
    tie_word_embeddings: Flag = derived(lambda js, c: True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, encoder(c, source_tokens()))


class T5Encoder(T5):
    """The encoder alone."""

    conditions: ClassVar[tuple[Condition, ...]] = BUCKETS_OF_AN_ENCODER
    reference: ClassVar[str] = "T5EncoderModel"
    float32_if_float16: ClassVar[tuple[str, ...]] = ("wo",)

    def forward(c, tokens: Data) -> Data:
        return encoder(c, tokens)


def encoder(c: Any, tokens: Data, *, apart: bool = False, **options: Any) -> Data:
    """`apart`: with a token embedding that is not the decoder's. `options`: of the stack."""

    def build(tokens: Data) -> Data:
        table = "encoder.embed_tokens.weight" if apart else "shared.weight"
        return stack(c, lookup(tokens, table, "embedding", c.vocab_size, c.d_model), "encoder.", c.n_layers, **options)

    return block(tokens, "", build, part="encoder")


def decoder(c: Any, tokens: Data, memory: Data, *, apart: bool = False, **options: Any) -> Data:
    """Token ids and an encoder's output to logits. `apart` as in `encoder`. `options`: of the stack."""
    table, component = "decoder.embed_tokens.weight", "other_embedding" if apart else "embedding"
    x = lookup(tokens, table, component, c.vocab_size, c.d_model, tied_to=None if apart else "shared.weight")
    x = stack(c, x, "decoder.", c.n_decoder_layers, memory, **options)
    return head(c, activate(x, "times 1/√d_model") if c.scaled else x, "shared.weight")


def source_tokens() -> Data:
    return given("source tokens", "source")


def self_attention(c: Any, x: Data, bias: Data, *, cached: bool = False) -> Data:
    return multi_head(
        c, x, "layer.0.SelfAttention.", QKVO, bias=False, cached=cached, turn=lambda q, k, v: (relative(q, bias), k, v)
    )


def relative_bias(c: Any, x: Data, name: str = "SelfAttention.relative_attention_bias") -> Data:
    """A bias for each pair of tokens and each head, looked up by distance: far ones share a row."""
    return lookup(
        Data("distances", (x,), (x.shape[0], x.shape[0])), f"layer.0.{name}.weight", "position", c.n_buckets, c.n_heads
    )


def feed_forward(c: Any, kind: str, x: Data, prefix: str) -> Data:
    prefix += "DenseReluDense."
    if c.gated:
        return gated_mlp(x, prefix, "mlp", c.d_ff, activation="gelu", names=("wi_0", "wi_1", "wo"))
    return plain_mlp(x, (prefix + "wi", prefix + "wo"), "mlp", c.d_ff, activation="relu")


def look(c: Any, x: Data, memory: Data) -> Data:
    return multi_head(c, x, "EncDecAttention.", QKVO, memory=memory, bias=False)


def stack(
    c: Any,
    x: Data,
    prefix: str,
    n_layers: Any,
    *memory: Data,
    kinds: Sequence[str] = (),
    table_each: bool = False,
    attend: Callable[..., Data] = self_attention,
    bias: Callable[..., Data] = relative_bias,
    feed_forward: Callable[..., Data] = feed_forward,
) -> Data:
    """The layers and the last norm.

    The first looks up the bias that all read, unless there is a table in each (`table_each`). `memory`: what a decoder
    looks at. `kinds`: of feed-forward layers, where they differ.
    """
    if kinds:
        spans: list[tuple[str, Any]] = [(("" if i else "first ") + kind, 1) for i, kind in enumerate(kinds)]
    else:
        spans = [("layer", n_layers)] if table_each else [("first", 1), ("layer", n_layers - 1)]

    def layer(kind: str, x: Data, *others: Data) -> Any:
        owner = table_each or kind.startswith("first")
        biases = bias(c, x) if owner else others[-1]
        h = norm(x, "layer.0.layer_norm")
        x = x + (attend(c, h, biases, cached=True) if memory else attend(c, h, biases))
        for source in others[: len(memory)]:
            x = crossing(x, "layer.1.", lambda x, source: x + look(c, norm(x, "layer_norm"), source), source)
        last = f"layer.{1 + len(memory)}."
        x = x + feed_forward(c, kind, norm(x, last + "layer_norm"), last)
        return x if table_each else (x, biases)

    x = layers(
        x, prefix + "block.{layer}.", spans, layer, reads=memory, carry=() if table_each else ((x.shape[0], c.n_heads),)
    )
    return norm(x, prefix + "final_layer_norm")
