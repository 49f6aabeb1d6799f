"""T5: an encoder and a decoder without biases, and one table of relative positions in each, which the first layer owns and all read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, shown
from paramcount.flow import Data, act, block, given, layers, lookup, norm
from paramcount.parts.attentions import relative
from paramcount.parts.classic import crossing, multi_head
from paramcount.parts.decoders import head
from paramcount.parts.feed_forward import gated_mlp, plain_mlp
from paramcount.sizes import ABSENT, Flag, Positive, Sizes, derived, hf

QKVO = ("q", "k", "v", "o")


def gated(js: Mapping[str, Any], c: Mapping[str, Any], absent: str = "relu") -> bool:
    word = js.get("feed_forward_proj", absent)
    first, *rest = word.split("-") if isinstance(word, str) else ("", "", "")
    if len(rest) > 1 or (rest and first != "gated"):
        raise ParamcountError(f"= {shown(word)}", where="feed_forward_proj", accepted="an activation, or gated- and an activation")
    return bool(first == "gated")


def decoder_layers(absent: int) -> Any:
    """As many as the encoder has where the config says nothing else; what counts is num_layers, also where an alias overrides it."""
    return lambda js, c: js.get("num_layers", absent)


class T5(Sizes):
    """Source: arXiv:1910.10683, section 2.1; gated feed-forward arXiv:2002.05202.

    The reference ties the head and the three tables whatever config.json says: tie_word_embeddings = false (T5 1.1, Flan-T5) only
    keeps it from scaling what the head reads. Their released files hold a head of its own.
    """

    reference: ClassVar[str] = "T5ForConditionalGeneration"
    table_each: ClassVar[bool] = False  # whether every layer has a table of relative positions

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
        memory = encoder(c, tokens)
        x = lookup(given("target", "target"), "decoder.embed_tokens.weight", "embedding", c.vocab_size, c.d_model, tied_to="shared.weight")
        x = stack(c, x, "decoder.", c.n_decoder_layers, memory)
        return head(c, act(x, "scale") if c.scaled else x, "shared.weight")

    def check(c) -> None:
        enough_buckets(c)


class T5Encoder(T5):
    """The encoder alone."""

    reference: ClassVar[str] = "T5EncoderModel"

    def forward(c, tokens: Data) -> Data:
        return encoder(c, tokens)


def enough_buckets(c: Any) -> None:
    if c.n_buckets < 4:
        raise ParamcountError(f"= {c.n_buckets} leaves an encoder none for near and far", where="n_buckets", accepted="at least 4")


def encoder(c: Any, tokens: Data) -> Data:
    def build(tokens: Data) -> Data:
        return stack(c, lookup(tokens, "shared.weight", "embedding", c.vocab_size, c.d_model), "encoder.", c.n_layers)

    return block(tokens, "", build, part="encoder")


def stack(c: Any, x: Data, prefix: str, n_layers: Any, *memory: Data) -> Data:
    """The layers and the last norm. `memory`: what a decoder looks at."""
    kinds = [("layer", n_layers)] if c.table_each else [("first", 1), ("layer", n_layers - 1)]
    carry = () if c.table_each else (c.n_heads,)

    def body(kind: str, x: Data, *others: Data) -> Any:
        bias = others[-1] if kind == "layer" and not c.table_each else relative_bias(c, x)
        x = layer(c, x, bias, *others[: len(memory)])
        return x if c.table_each else (x, bias)

    return norm(layers(x, prefix + "block.{layer}.", kinds, body, reads=memory, carry=carry), prefix + "final_layer_norm")


def relative_bias(c: Any, x: Data) -> Data:
    """A bias for each head, looked up by distance: far ones share a row."""
    distances = Data("distances", (x,), x.shape[:1])
    return lookup(distances, "layer.0.SelfAttention.relative_attention_bias.weight", "position", c.n_buckets, c.n_heads)


def layer(c: Any, x: Data, bias: Data, *memory: Data) -> Data:
    h = norm(x, "layer.0.layer_norm")
    x = x + multi_head(c, h, "layer.0.SelfAttention.", QKVO, bias=False, cached=bool(memory), turn=lambda q, k, v: (relative(q, bias), k, v))
    for source in memory:
        x = crossing(x, source, "layer.1.", lambda x, source: x + look(c, norm(x, "layer_norm"), source))
    last = f"layer.{1 + len(memory)}."
    return x + feed_forward(c, norm(x, last + "layer_norm"), last + "DenseReluDense.")


def look(c: Any, x: Data, memory: Data) -> Data:
    return multi_head(c, x, "EncDecAttention.", QKVO, memory=memory, bias=False)


def feed_forward(c: Any, x: Data, prefix: str) -> Data:
    if c.gated:
        return gated_mlp(x, prefix, "mlp", c.d_ff, activation="gelu", names=("wi_0", "wi_1", "wo"))
    return plain_mlp(x, (prefix + "wi", prefix + "wo"), "mlp", c.d_ff, activation="relu")
