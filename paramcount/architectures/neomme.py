"""NeoMME: one encoder for text and for the patches of a page, with narrow embeddings and norms without weights.

Every layer also reads the embeddings; the first and the last layer with full attention also read a table of values.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import isfinite
from typing import Any, ClassVar, NamedTuple

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

LONG = 1024  # tokens that every second layer with a window sees on either side
SHARES = {"full_attention": 0.25, "sliding_attention": 1.0}  # of a head that is rotated
EMBEDDINGS = "model.embed_tokens."


class NeoMMELayer(NamedTuple):
    word: str
    window: int  # 0 for none
    reads_values: bool


def name_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    last = c["n_layers"] - 1
    return tuple(sizes.SLIDING[(i + 1) % 6 == 0 or i == last] for i in sizes.per_layer(c))


def list_windows(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[Any, ...]:
    """The tokens that a token sees on either side, for each layer; 0 for all."""
    usual, own = js.get("sliding_window", 256), js.get("per_layer_config")
    if own is None or not isinstance(own, Mapping):
        order = [i for i, word in enumerate(c["layer_types"]) if word == sizes.SLIDING[0]]
        windows = {i: LONG if place % 2 else usual for place, i in enumerate(order)}
        found = [windows.get(i) for i in range(len(c["layer_types"]))]
    else:
        stated = {int(i): values for i, values in own.items()}
        found = [stated.get(i, {}).get("sliding_window", usual) for i in range(len(c["layer_types"]))]
    for word, window in zip(c["layer_types"], found):
        if window is None and word == sizes.SLIDING[0]:
            raise ParamcountError("= null for a layer with a window", where="sliding_window", expected="an integer")
        if window is not None and (type(window) is not int or window < 1):
            raise sizes.make_value_error(window, "sliding_window", "a positive integer")
    return tuple(window or 0 for window in found)


@sizes.options_first
def rotated_part(js: sizes.ConfigJson, c: sizes.FieldValues, word: str) -> int:
    """The rotated part of a head in layers of a kind."""
    rope = (js.get("rope_scaling") or js.get("rope_parameters") or {}).get(word) or {}
    n = sizes.part_of(c["d_head"], rope.get("partial_rotary_factor", SHARES[word]))
    if word in c["layer_types"] and (n < 4 or n % 4 or n > c["d_head"]):
        where = f"rope_parameters.{word}.partial_rotary_factor"
        raise ParamcountError(f"rotates {n} values of a head", where=where, expected="a multiple of 4")
    return n


def small_residual(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    by = js.get("residual_multiplier")
    if by is not None and not (isfinite(by) and by > 0):
        raise ParamcountError(f"= {by}", where="residual_multiplier", expected="a positive number")


class NeoMME(parts.PositionlessEncoder):
    """Source: NeoMMEEncoderLayer of the reference; a page is its image, whose patches follow two tokens, row by row."""

    reference = "NeoMMEForMaskedLM"
    unused_keys = ("embedding_dim",)  # of the retrieval head
    conditions = (small_residual, sizes.positions_from(1), sizes.one_of("hidden_act", ("relu2",), "relu2"))
    prefix = "model."
    layers_name = "layers"
    layered: ClassVar = {word: {"sliding_window": ""} for word in sizes.SLIDING}

    d_ff: sizes.Positive = sizes.hf()
    d_embedding: sizes.Positive = sizes.hf("embedding_rank")
    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf()
    layer_types: sizes.Words = sizes.hf(absent=name_layers, null=sizes.ABSENT)
    windows: sizes.Indices = sizes.derived(list_windows)
    d_rope: sizes.Positive = sizes.derived(rotated_part("full_attention"))
    d_local_rope: sizes.Positive = sizes.derived(rotated_part("sliding_attention"))
    patch_size: sizes.Positive = sizes.hf("patch_size")
    attention_bias: sizes.Flag = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf()

    norm_eps = sizes.setting("norm_eps")
    residual_multiplier = sizes.setting("residual_multiplier", default=lambda js, c: (2 * c.n_layers) ** -0.5)
    rope = sizes.filled_rotary("full_attention", 1_000_000, 16384)
    local_rope = sizes.filled_rotary("sliding_attention", 10_000, 16384)
    image_token = sizes.setting("image_token_id")
    document_token = sizes.setting("document_token_id")

    def forward(c, tokens: Data, head: bool = True) -> Data:
        pixels = ops.given("pixels", 3, "height", "width")
        patches = ops.block(pixels, "model.patch_embeddings.", c.embed_patches, part="vision")

        def build(tokens: Data, pixels: Data, patches: Data) -> Data:
            x = ops.lookup(tokens, EMBEDDINGS + "word_embeddings.weight", "embedding", c.vocab_size, c.d_embedding)
            x = ops.linear(x, EMBEDDINGS + "embedding_projection", "other", c.d_model)
            x = ops.insert_unless_after(x, tokens, patches, c.image_token, c.document_token)
            x = ops.plain_norm(x, "rms", c.norm_eps)
            width = c.n_kv_heads * c.d_head
            values = ops.lookup(tokens, "model.value_embeddings.weight", "other_embedding", c.vocab_size, width)
            places = ops.page_places(tokens, pixels, c.patch_size, c.patch_size)
            x = ops.plain_norm(c.encode(x, x, values, places), "rms", c.norm_eps)
            return c.head(x) if head else x

        return ops.block(tokens, "", build, reads=(pixels, patches), part="encoder")

    def embed_patches(c, pixels: Data) -> Data:
        x = ops.cut(pixels, c.patch_size, c.patch_size, axes="hwc")
        x = ops.layer_norm(ops.reshape(x, 3 * c.patch_size * c.patch_size), "norm", 1e-5)
        x = ops.activate(ops.linear(x, "up_proj", "mlp.up", 2 * c.d_model), "gelu")
        return ops.linear(x, "down_proj", "mlp.down", c.d_model, bias=True)

    def kinds(c) -> list[tuple[Hashable, ops.Size]]:
        full = [i for i, word in enumerate(c.layer_types) if word == sizes.SLIDING[1]]
        ends = (full[0], full[-1])
        return [(NeoMMELayer(word, c.windows[i], i in ends), 1) for i, word in enumerate(c.layer_types)]

    def layer_of(c, kind: NeoMMELayer, x: Data, *memory: Data) -> Data:
        first, values, places = memory
        both = ops.multiply_per_head(ops.to_heads(ops.join(x, first), 2, c.d_model), "lambdas", "other")
        h = ops.plain_norm(ops.sum_of_streams(both), "rms", c.norm_eps)
        x = x + ops.scale_by(c.attention(kind, h, values, places), c.residual_multiplier)
        h = ops.plain_norm(x, "rms", c.norm_eps)
        y = parts.plain_mlp(h, ("mlp.up_proj", "mlp.down_proj"), "mlp", c.d_ff, activation="relu2", bias=c.mlp_bias)
        return x + ops.scale_by(y, c.residual_multiplier)

    def attention(c, kind: NeoMMELayer, x: Data, values: Data, places: Data) -> Data:
        """What is attended to, without its part along the value of the token itself, and gated."""
        widths = {"q": c.n_heads, "k": c.n_kv_heads, "v": c.n_kv_heads}
        q, k, v = (
            ops.linear(x, f"self_attn.{name}_proj", f"qkv.{name}", (n, c.d_head), bias=c.attention_bias)
            for name, n in widths.items()
        )
        q, k = (
            c.turn(kind, ops.plain_norm(q, "rms", c.norm_eps), places),
            c.turn(kind, ops.plain_norm(k, "rms", c.norm_eps), places),
        )
        if kind.reads_values:
            v = v + ops.to_heads(values, c.n_kv_heads, c.d_head)
        a = ops.attend(q, k, v, mask=ops.Window(kind.window + 1, kind.window) if kind.window else None)
        own = ops.project_onto(a, ops.plain_norm(ops.to_every_head(v, c.n_heads), "l2", 1e-24))
        own = ops.multiply_per_head(own, "self_attn.exclusive_self_attention.alpha", "other", function="tanh")
        a = a + ops.scale_by(own, -1.0)
        prefix = "self_attn.output_projection."
        gate = ops.linear(x, prefix + "gate_proj", "qkv.gate", (c.n_heads, c.d_head))  # [n, n_heads, d_head]
        return ops.linear(
            a * ops.activate(gate, "sigmoid"), prefix + "o_proj", "output_projection", c.d_model, bias=c.attention_bias
        )

    def turn(c, kind: NeoMMELayer, x: Data, places: Data) -> Data:
        """Pairs of values rotate with the row and with the column in turns."""
        is_full = kind.word == sizes.SLIDING[1]
        n, angles = (c.d_rope, c.rope) if is_full else (c.d_local_rope, c.local_rope)
        axes = ops.Axes((n, n), "interleaved")  # as many pairs of each as there are
        return parts.partial_rope(x, None if n == c.d_head else n, angles, "halves", places, axes=axes)

    def head(c, x: Data) -> Data:
        projection, table = EMBEDDINGS + "embedding_projection.weight", EMBEDDINGS + "word_embeddings.weight"
        tied = c.tie_word_embeddings
        x = ops.linear(
            x, "unembedding_projection", "other", c.d_embedding, transposed=True, tied_to=projection if tied else None
        )
        return ops.linear(x, "lm_head", "lm_head", c.vocab_size, tied_to=table if tied else None)

    def check(c) -> None:
        sizes.check_divides(c, "n_kv_heads", "n_heads")
        sizes.check_layer_types(c, "layer_types", "n_layers", sizes.SLIDING)
        if sizes.SLIDING[1] not in c.layer_types:
            raise ParamcountError("has no full_attention", where=FieldName("layer_types"), expected="at least one")
