"""Gemma 3n: per-layer token embeddings, AltUp, Laurel and shared KV caches.

Of four streams of hidden states a layer works on one and corrects all (AltUp); Laurel is a low-rank residual; the last
layers attend to the keys and values of an earlier layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.gemma import enlarge
from paramcount.architectures.olmo import bare_norm
from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.flow import (
    Body,
    Data,
    Repeat,
    Size,
    Unreachable,
    activate,
    attend,
    block,
    elementwise,
    given,
    layers,
    linear,
    lookup,
    norm,
    rope,
)
from paramcount.parts.attentions import Heads
from paramcount.parts.decoders import head
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import (
    ABSENT,
    Condition,
    Derivation,
    Flag,
    Indices,
    Natural,
    Positive,
    Sizes,
    Widths,
    Words,
    derived,
    full_every,
    hf,
    per_layer,
)
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_divides, check_sliding_or_full


def sharing_layers(absent: int) -> Derivation:
    """The last layers, as many as num_kv_shared_layers says, worked out as the reference does."""

    def found(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, ...]:
        n = js.get("num_kv_shared_layers", absent)
        if type(n) is not int:
            raise ParamcountError(f"= {describe_value(n)}", where="num_kv_shared_layers", expected="an integer")
        if n == 0:
            return ()
        first, words = c["n_layers"] - n, c["layer_types"]
        before = words[:first][::-1]
        if set(before) != set(words):
            raise ParamcountError(
                f"= {n}",
                where="num_kv_shared_layers",
                expected="a smaller number, which leaves an earlier layer of each type",
            )
        shared = [i >= first for i in per_layer(c)]
        for word in set(words):
            shared[first - 1 - before.index(word)] = False  # the layer that the last ones take keys and values from
        return tuple(i for i in per_layer(c) if shared[i])

    return found


def sources_come_first(c: Any) -> None:
    """A layer without keys and values of its own needs an earlier one of its type that has them."""
    shared, seen = set(c.kv_sharing_layers), set()
    for i, word in enumerate(c.layer_types):
        if i in shared and word not in seen:
            raise ParamcountError(
                f"= {i} has no earlier layer of its type to share with",
                where=FieldName("kv_sharing_layers"),
                expected="layers that follow one of the same type",
            )
        if i not in shared:
            seen.add(word)


def sparse_layers(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, ...]:
    """The layers whose MLP keeps only its largest gates."""
    shares = js.get("activation_sparsity_pattern")
    if shares is None:
        return tuple(range(10 if c["n_layers"] > 10 else 0))
    if len(shares) != c["n_layers"]:
        raise ParamcountError(
            f"has {len(shares)} entries for {c['n_layers']} layers",
            where="activation_sparsity_pattern",
            expected="one entry per layer",
        )
    return tuple(i for i in per_layer(c) if shares[i] > 0)


def active_stream_exists(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    i, n = js.get("altup_active_idx", 0), c["n_streams"]
    if type(i) is not int or not -n <= i < n:
        raise ParamcountError(
            f"= {describe_value(i)}, but there are {n} streams", where="altup_active_idx", expected=f"{-n} to {n - 1}"
        )


def padding_in_both(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    padding_in_table(0)(js, {"vocab_size": min(c["vocab_size"], c["n_per_layer_rows"])})


class Gemma3nText(Sizes):
    """Source: modeling_gemma3n.py of the reference; AltUp arXiv:2301.13310, Laurel arXiv:2411.07501."""

    reference: ClassVar[str] = "Gemma3nForCausalLM"
    linear_by_component: ClassVar[bool] = False
    base_model: ClassVar[str | None] = "Gemma3nTextModel"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_both, active_stream_exists)

    vocab_size: Positive = hf(absent=262400)
    d_model: Positive = hf(absent=2048)
    n_layers: Positive = hf(absent=35)
    n_heads: Positive = hf(absent=8)
    n_kv_heads: Positive = hf(absent=2)
    d_head: Positive = hf(absent=256)
    d_ff: Positive | Widths = hf(absent=16384)
    layer_types: Words = hf(absent=full_every(5), null=ABSENT)
    window: Positive = hf(absent=512)
    kv_sharing_layers: Indices = derived(sharing_layers(15))
    sparse_layers: Indices = derived(sparse_layers)
    n_per_layer_rows: Positive = hf("vocab_size_per_layer_input", absent=262144)
    d_per_layer: Natural = hf("hidden_size_per_layer_input", absent=256)
    n_streams: Positive = hf("altup_num_inputs", absent=4)
    scaled_output: Flag = hf("altup_correct_scale", absent=True)
    d_laurel: Positive = hf("laurel_rank", absent=64)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        table = "model.embed_tokens.weight"
        x = enlarge(lookup(tokens, table, "embedding", c.vocab_size, c.d_model))
        own = vectors_of_layers(c, tokens, x, "model.")
        x = into_streams(c, x)
        x = layers(
            x,
            "model.layers.{layer}.",
            kinds(c),
            lambda kind, *inputs: layer(c, kind, *inputs),
            reads=(own,),
            carry=carried(c),
        )
        return head(c, norm(out_of_streams(c, x), "model.norm"), table)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        if c.scaled_output:
            return ()
        x = given("hidden states", "tokens", c.d_model)
        scales = layers(x, "model.layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: scale_output(c, x))
        return (Unreachable(scales, "altup_correct_scale is false"),)

    def check(c) -> None:
        check_divides(c, "n_heads", "d_model")
        check_sliding_or_full(c)
        sources_come_first(c)
        if isinstance(c.d_ff, tuple) and len(c.d_ff) != c.n_layers:
            found, sizes = (
                f"has {len(c.d_ff)} items for " + FieldName("n_layers") + f" = {c.n_layers}",
                (len(c.d_ff), c.n_layers),
            )
            raise ParamcountError(found, where=FieldName("d_ff"), expected="one size, or one per layer", sizes=sizes)


def vectors_of_layers(c: Any, tokens: Data, x: Data, prefix: str) -> Data:
    """A small vector of each token for every layer: out of a table of its own, and out of the token's usual vector."""
    rows = (x.shape[0], c.n_layers, c.d_per_layer)
    width = c.n_layers * c.d_per_layer
    own = lookup(tokens, prefix + "embed_tokens_per_layer.weight", "other_embedding", c.n_per_layer_rows, width)
    own = Data("split", (activate(own, "times √d_per_layer"),), rows)
    projected = linear(x, prefix + "per_layer_model_projection", "other", rows[1:])
    projected = norm(activate(projected, "times 1/√d_model"), prefix + "per_layer_projection_norm")
    return activate(projected + own, "times 1/√2")


def kinds(c: Any) -> list[tuple[tuple[str, str, str, int | None], int]]:
    """(attention, whose keys and values, gates, width where layers differ in it) of each layer."""
    shared, sparse = set(c.kv_sharing_layers), set(c.sparse_layers)
    found = []
    for i, word in enumerate(c.layer_types):
        width = c.d_ff[i] if isinstance(c.d_ff, tuple) else None
        found.append(((word, "shared" if i in shared else "own", "sparse" if i in sparse else "all", width), 1))
    return found


def carried(c: Any) -> tuple[tuple[Size, Size], ...]:
    """Keys and values of the last full and of the last sliding layer that had some."""
    return ((c.n_kv_heads, c.d_head),) * 4 if c.kv_sharing_layers else ()


def into_streams(c: Any, x: Data) -> Data:
    """The token vector and, as long as it, as many projections of it as there are further streams."""
    inner = Data("input", (), x.shape)
    body = Body(
        Repeat("stream", c.n_streams - 1, c.n_streams - 1, runs=((0, c.n_streams - 1),)),
        (inner,),
        linear(inner, "", "other", c.d_model),
    )
    x = Data(
        "streams", (x,), (x.shape[0], c.n_streams, c.d_model), prefix="model.altup_projections.{stream}", bodies=(body,)
    )
    return activate(x, "as long as the first")


def out_of_streams(c: Any, x: Data) -> Data:
    """The mean of the first stream and projections of the others."""
    inner = Data("input", (), (x.shape[0], c.d_model))
    body = Body(
        Repeat("stream", c.n_streams - 1, c.n_streams - 1, runs=((0, c.n_streams - 1),)),
        (inner,),
        linear(inner, "", "other", c.d_model),
    )
    x = Data("streams", (x,), x.shape, prefix="model.altup_unembed_projections.{stream}", bodies=(body,))
    return Data("mean of the streams", (activate(x, "as long as the first"),), inner.shape)


def layer(c: Any, kind: tuple[str, str, str, int | None], x: Data, own: Data, *kv: Data) -> Any:
    word, whose, gates, width = kind
    predicted = predict(c, x)
    active = Data("active stream", (predicted,), (x.shape[0], c.d_model))
    h = norm(active, "input_layernorm")
    laurel = h + norm(
        linear(linear(h, "laurel.linear_left", "other", c.d_laurel), "laurel.linear_right", "other", c.d_model),
        "laurel.post_laurel_norm",
    )
    window = c.window if word == "sliding_attention" else None
    a, kv = sharing_attention(
        h, Heads(c.n_heads, c.n_kv_heads, c.d_head), word, whose, kv, bias=c.attention_bias, window=window
    )
    y = activate(active + norm(a, "post_attention_layernorm") + laurel, "times 1/√2")
    activation = "gelu of the largest" if gates == "sparse" else "gelu"
    y = y + norm(
        gated_mlp(
            norm(y, "pre_feedforward_layernorm"),
            "mlp.",
            "mlp",
            c.d_ff if width is None else width,
            activation=activation,
        ),
        "post_feedforward_layernorm",
    )
    x = correct(c, predicted, y)
    first = Data("active stream", (x,), active.shape)
    if c.scaled_output:
        first = scale_output(c, first)
    x = Data("add to all streams but the first", (x, read_own_vector(c, first, own)), x.shape)
    return (x, *kv) if kv else x


def scale_output(c: Any, x: Data) -> Data:
    return elementwise(x, "scale", "altup.correct_output_scale", "other", c.d_model)


def sharing_attention(
    x: Data,
    c: Heads,
    word: str,
    whose: str,
    kv: tuple[Data, ...],
    *,
    bias: bool,
    window: Size | None,
    v_is_k: bool = False,
) -> tuple[Data, tuple[Data, ...]]:
    """x to attended x, and what is handed on: keys and values of the last full and of the last sliding layer.

    A layer whose keys and values are "shared" has none and takes the last of its type. `v_is_k`: values are the keys
    before their norm and rotation.
    """
    at = 0 if word == "full_attention" else 2
    q = rope(norm(linear(x, "self_attn.q_proj", "qkv.q", (c.n_heads, c.d_head), bias=bias), "self_attn.q_norm"))
    if whose == "shared":
        a = attend(q, kv[at], kv[at + 1], window=window, cached=(), causal=True)
    else:
        k = linear(x, "self_attn.k_proj", "qkv.k", (c.n_kv_heads, c.d_head), bias=bias)
        v = bare_norm(k if v_is_k else linear(x, "self_attn.v_proj", "qkv.v", (c.n_kv_heads, c.d_head), bias=bias))
        k = rope(norm(k, "self_attn.k_norm"))
        a = attend(q, k, v, window=window)
        kv = (*kv[:at], k, v, *kv[at + 2 :]) if kv else ()
    return linear(a, "self_attn.o_proj", "output_projection", x.shape[-1], bias=bias), kv


def modalities(c: Any, x: Data) -> Data:
    return activate(linear(norm(x, "router_norm"), "modality_router", "other", c.n_streams), "tanh")


def predict(c: Any, x: Data) -> Data:
    """Every stream as a mixture of all, in shares that depend on the active one."""
    active = Data("active stream", (x,), (x.shape[0], c.d_model))
    shares = block(active, "altup.", lambda x: modalities(c, x))
    mixed = Data(
        "mix streams", (x, linear(shares, "altup.prediction_coefs", "other", (c.n_streams, c.n_streams))), x.shape
    )
    return x + mixed


def correct(c: Any, predicted: Data, y: Data) -> Data:
    """To every stream its share of what the layer found beside the prediction."""
    shares = block(y, "altup.", lambda x: modalities(c, x), tied_to="model.layers.{layer}.altup.")
    return Data(
        "correct streams",
        (predicted, y, linear(shares, "altup.correction_coefs", "other", c.n_streams)),
        predicted.shape,
    )


def read_own_vector(c: Any, x: Data, own: Data) -> Data:
    """What the layer's own vector of the token adds, gated by the hidden state."""
    gate = activate(linear(x, "per_layer_input_gate", "other", c.d_per_layer), "gelu")
    own = Data("of this layer", (own,), gate.shape)
    return norm(linear(gate * own, "per_layer_projection", "other", c.d_model), "post_per_layer_input_norm")
