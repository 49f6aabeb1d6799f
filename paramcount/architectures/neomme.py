"""NeoMME: one encoder for text and for the patches of a page, with narrow embeddings and norms without weights.

Every layer also reads the embeddings; the first and the last layer with full attention also read a table of values.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import isfinite
from typing import Any, ClassVar, NamedTuple

from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.flow import (
    Axes,
    Data,
    Size,
    activate,
    attend,
    block,
    cut,
    given,
    insert,
    join,
    layer_norm,
    linear,
    lookup,
    multiply_vector,
    page_places,
    plain_norm,
    project_onto,
    reshape,
    scale_by,
    sum_of_streams,
    to_every_head,
    to_heads,
)
from paramcount.parts.attentions import partial_rope
from paramcount.parts.encoders import PositionlessEncoder
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import (
    ABSENT,
    SLIDING,
    ConfigJson,
    FieldValues,
    Flag,
    Indices,
    Positive,
    Words,
    derived,
    filled_rotary,
    hf,
    part_of,
    per_layer,
    setting,
)
from paramcount.sizes.conditions import one_of, positions_from
from paramcount.sizes.rules import check_divides, check_layer_types

LONG = 1024  # tokens that every second layer with a window sees on either side
SHARES = {"full_attention": 0.25, "sliding_attention": 1.0}  # of a head that is rotated
EMBEDDINGS = "model.embed_tokens."


class Kind(NamedTuple):
    word: str
    window: int  # 0 for none
    reads_values: bool


def name_layers(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    last = c["n_layers"] - 1
    return tuple(SLIDING[(i + 1) % 6 == 0 or i == last] for i in per_layer(c))


def list_windows(js: ConfigJson, c: FieldValues) -> tuple[Any, ...]:
    """The tokens that a token sees on either side, for each layer; 0 for all."""
    usual, own = js.get("sliding_window", 256), js.get("per_layer_config")
    if own is None or not isinstance(own, Mapping):
        order = [i for i, word in enumerate(c["layer_types"]) if word == SLIDING[0]]
        windows = {i: LONG if place % 2 else usual for place, i in enumerate(order)}
        found = [windows.get(i) for i in range(len(c["layer_types"]))]
    else:
        stated = {int(i): values for i, values in own.items()}
        found = [stated.get(i, {}).get("sliding_window", usual) for i in range(len(c["layer_types"]))]
    for word, window in zip(c["layer_types"], found):
        if window is None and word == SLIDING[0]:
            raise ParamcountError("= null for a layer with a window", where="sliding_window", expected="an integer")
        if window is not None and (type(window) is not int or window < 1):
            raise ParamcountError(f"= {describe_value(window)}", where="sliding_window", expected="a positive integer")
    return tuple(window or 0 for window in found)


def rotated_part(word: str) -> Any:
    """The field with the rotated part of a head in layers of a kind."""

    def derive(js: ConfigJson, c: FieldValues) -> int:
        rope = (js.get("rope_scaling") or js.get("rope_parameters") or {}).get(word) or {}
        n = part_of(c["d_head"], rope.get("partial_rotary_factor", SHARES[word]))
        if word in c["layer_types"] and (n < 4 or n % 4 or n > c["d_head"]):
            where = f"rope_parameters.{word}.partial_rotary_factor"
            raise ParamcountError(f"rotates {n} values of a head", where=where, expected="a multiple of 4")
        return n

    return derived(derive)


def small_residual(js: ConfigJson, c: FieldValues) -> None:
    by = js.get("residual_multiplier")
    if by is not None and not (isfinite(by) and by > 0):
        raise ParamcountError(f"= {by}", where="residual_multiplier", expected="a positive number")


class NeoMME(PositionlessEncoder):
    """Source: NeoMMEEncoderLayer of the reference; a page is its image, whose patches follow two tokens, row by row."""

    reference = "NeoMMEForMaskedLM"
    unused_keys = ("embedding_dim",)  # of the retrieval head
    conditions = (small_residual, positions_from(1), one_of("hidden_act", ("relu2",), "relu2"))
    prefix = "model."
    layers_name = "layers"
    layered: ClassVar = {word: {"sliding_window": ""} for word in SLIDING}

    d_ff: Positive = hf()
    d_embedding: Positive = hf("embedding_rank")
    n_kv_heads: Positive = hf()
    d_head: Positive = hf()
    layer_types: Words = hf(absent=name_layers, null=ABSENT)
    windows: Indices = derived(list_windows)
    d_rope: Positive = rotated_part("full_attention")
    d_local_rope: Positive = rotated_part("sliding_attention")
    patch_size: Positive = hf("patch_size")
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("norm_eps", default=1e-6)
    residual_multiplier = setting("residual_multiplier", default=lambda js, c: (2 * c.n_layers) ** -0.5)
    rope = filled_rotary("full_attention", 1_000_000, 16384)
    local_rope = filled_rotary("sliding_attention", 10_000, 16384)
    image_token = setting("image_token_id", default=6)
    document_token = setting("document_token_id", default=5)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        pixels = given("pixels", 3, "height", "width")
        patches = block(pixels, "model.patch_embeddings.", c.embed_patches, part="vision")

        def build(tokens: Data, pixels: Data, patches: Data) -> Data:
            x = lookup(tokens, EMBEDDINGS + "word_embeddings.weight", "embedding", c.vocab_size, c.d_embedding)
            x = linear(x, EMBEDDINGS + "embedding_projection", "other", c.d_model)
            x = insert(x, tokens, patches, c.image_token, unless_after=c.document_token)
            x = plain_norm(x, "rms", c.norm_eps)
            width = c.n_kv_heads * c.d_head
            values = lookup(tokens, "model.value_embeddings.weight", "other_embedding", c.vocab_size, width)
            places = page_places(tokens, pixels, c.patch_size, c.patch_size)
            x = plain_norm(c.encode(x, x, values, places), "rms", c.norm_eps)
            return c.head(x) if head else x

        return block(tokens, "", build, reads=(pixels, patches), part="encoder")

    def embed_patches(c, pixels: Data) -> Data:
        x = cut(pixels, c.patch_size, c.patch_size, channels_last=True)
        x = layer_norm(reshape(x, 3 * c.patch_size * c.patch_size), "norm", 1e-5)
        x = activate(linear(x, "up_proj", "mlp.up", 2 * c.d_model), "gelu")
        return linear(x, "down_proj", "mlp.down", c.d_model, bias=True)

    def kinds(c) -> list[tuple[Hashable, Size]]:
        full = [i for i, word in enumerate(c.layer_types) if word == SLIDING[1]]
        ends = (full[0], full[-1])
        return [(Kind(word, c.windows[i], i in ends), 1) for i, word in enumerate(c.layer_types)]

    def layer_of(c, kind: Kind, x: Data, *memory: Data) -> Data:
        first, values, places = memory
        both = multiply_vector(to_heads(join(x, first), 2, c.d_model), "lambdas", "other", 2, per_head=True)
        h = plain_norm(sum_of_streams(both), "rms", c.norm_eps)
        x = x + scale_by(c.attention(kind, h, values, places), c.residual_multiplier)
        h = plain_norm(x, "rms", c.norm_eps)
        y = plain_mlp(h, ("mlp.up_proj", "mlp.down_proj"), "mlp", c.d_ff, activation="relu2", bias=c.mlp_bias)
        return x + scale_by(y, c.residual_multiplier)

    def attention(c, kind: Kind, x: Data, values: Data, places: Data) -> Data:
        """What is attended to, without its part along the value of the token itself, and gated."""
        sizes = {"q": c.n_heads, "k": c.n_kv_heads, "v": c.n_kv_heads}
        q, k, v = (
            linear(x, f"self_attn.{name}_proj", f"qkv.{name}", (n, c.d_head), bias=c.attention_bias)
            for name, n in sizes.items()
        )
        q, k = (
            c.turn(kind, plain_norm(q, "rms", c.norm_eps), places),
            c.turn(kind, plain_norm(k, "rms", c.norm_eps), places),
        )
        if kind.reads_values:
            v = v + to_heads(values, c.n_kv_heads, c.d_head)
        a = attend(q, k, v, window=kind.window or None, cached=(), causal=False)
        own = project_onto(a, plain_norm(to_every_head(v, c.n_heads), "l2", 1e-24))
        own = multiply_vector(
            own, "self_attn.exclusive_self_attention.alpha", "other", c.n_heads, function="tanh", per_head=True
        )
        a = a + scale_by(own, -1.0)
        prefix = "self_attn.output_projection."
        gate = linear(x, prefix + "gate_proj", "qkv.gate", (c.n_heads, c.d_head))
        return linear(
            a * activate(gate, "sigmoid"), prefix + "o_proj", "output_projection", c.d_model, bias=c.attention_bias
        )

    def turn(c, kind: Kind, x: Data, places: Data) -> Data:
        """Pairs of values rotate with the row and with the column in turns."""
        is_full = kind.word == SLIDING[1]
        n, angles = (c.d_rope, c.rope) if is_full else (c.d_local_rope, c.local_rope)
        axes = Axes((n, n), "interleaved")  # as many pairs of each as there are
        return partial_rope(x, None if n == c.d_head else n, angles, "halves", places, axes=axes)

    def head(c, x: Data) -> Data:
        projection, table = EMBEDDINGS + "embedding_projection.weight", EMBEDDINGS + "word_embeddings.weight"
        tied = c.tie_word_embeddings
        x = linear(
            x, "unembedding_projection", "other", c.d_embedding, transposed=True, tied_to=projection if tied else None
        )
        return linear(x, "lm_head", "lm_head", c.vocab_size, tied_to=table if tied else None)

    def check(c) -> None:
        check_divides(c, "n_kv_heads", "n_heads")
        check_layer_types(c, "layer_types", "n_layers", SLIDING)
        if SLIDING[1] not in c.layer_types:
            raise ParamcountError("has no full_attention", where=FieldName("layer_types"), expected="at least one")
