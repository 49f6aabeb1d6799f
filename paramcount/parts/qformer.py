"""The Q-Former: learned queries that attend to one another, to a text beside them, and to an image or a sound.

Layers are BERT's; some of them have cross-attention, and queries and text have MLPs of their own.

Source: arXiv:2301.12597, section 3.1; Blip2QFormerModel and InstructBlipQFormerModel of the reference.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

NAMES = ("attention.query", "attention.key", "attention.value", "output.dense")  # matrices of an attention


class QFormer(sizes.Sizes):
    """Queries alone."""

    section: ClassVar[str | None] = "qformer_config"
    unused_keys: ClassVar[tuple[str, ...]] = ("vocab_size", "max_position_embeddings", "encoder_hidden_size")

    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    cross_every: sizes.Positive = sizes.hf("cross_attention_frequency")
    cross_layers: sizes.Indices = sizes.derived(lambda js, c: tuple(range(0, c["n_layers"], c["cross_every"])))

    activation: ClassVar = sizes.setting("hidden_act", usual="gelu")
    norm_eps: ClassVar = sizes.setting("layer_norm_eps", usual=1e-12)

    def fill(c, queries: Data, memory: Data, *text: Data) -> Data:
        """Queries [queries, d_model] and states of an encoder to the same queries, filled."""
        return c.encode(c.norm(queries, "layernorm"), memory)

    def encode(c, x: Data, memory: Data, *queries: Data) -> Data:
        """The layers. `queries`: where x also has text, as many rows as the queries are."""
        reads = (memory, *queries)
        return ops.layers(x, "encoder.layer.{layer}.", c.kinds(), lambda kind, *x: c.layer(kind, *x), reads=reads)

    def kinds(c) -> list[tuple[str, Any]]:
        kinds, reached = [], 0
        for i in c.cross_layers:
            kinds += [("self", i - reached), ("cross", 1)]
            reached = i + 1
        return [*kinds, ("self", c.n_layers - reached)]

    def layer(c, kind: str, x: Data, memory: Data, *queries: Data) -> Data:
        x = c.norm(x + c.attention(x, "attention."), "attention.output.LayerNorm")
        text = ops.later_rows(x, *queries) if queries else None
        x = ops.drop_rows(x, *queries) if queries else x
        if kind == "cross":
            x = ops.block(x, "crossattention.", c.look, reads=(memory,))
        x = c.feed_forward(x, "_query")
        return x if text is None else ops.stack_rows(x, c.feed_forward(text, ""), length="queries and text")

    def look(c, x: Data, memory: Data) -> Data:
        return c.norm(x + c.attention(x, "", memory), "output.LayerNorm")

    def attention(c, x: Data, prefix: str, memory: Data | None = None) -> Data:
        names = tuple(prefix + name for name in NAMES)
        return parts.multi_head(c, x, "", names, memory=memory, mix=ops.attend)

    def feed_forward(c, x: Data, of: str) -> Data:
        names = (f"intermediate{of}.dense", f"output{of}.dense")
        h = parts.plain_mlp(x, names, "mlp", c.d_ff, activation=c.activation, bias=True)
        return c.norm(x + h, f"output{of}.LayerNorm")

    norm = parts.use_layer_norm

    def check(c) -> None:
        sizes.check_heads_fill(c)


class Blip2QFormer(QFormer):
    """Queries alone, though the layers may also have the MLPs for a text, which nothing reads."""

    config_class = "Blip2QFormerConfig"

    has_text_mlp: sizes.Flag = sizes.hf("use_qformer_text_input")

    def read_text(c, x: Data) -> Data:
        kinds = [("layer", c.n_layers)]
        return ops.layers(x, "encoder.layer.{layer}.", kinds, lambda kind, x: c.feed_forward(x, ""))


class TextQFormer(QFormer):
    """Queries beside a text, which they attend to."""

    config_class = "InstructBlipQFormerConfig"

    unused_keys: ClassVar[tuple[str, ...]] = ("encoder_hidden_size",)

    vocab_size: sizes.Positive = sizes.hf()
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")

    def fill(c, queries: Data, memory: Data, *text: Data) -> Data:
        (tokens,) = text
        x = ops.lookup(tokens, "embeddings.word_embeddings.weight", "other_embedding", c.vocab_size, c.d_model)
        x = x + ops.position_table(x, "embeddings.position_embeddings.weight", c.n_positions)
        x = ops.stack_rows(queries, x, length="queries and text")
        x = c.encode(c.norm(x, "embeddings.layernorm"), memory, queries)
        return ops.drop_rows(x, queries)


def learned_queries(name: str, rows: Any, width: Any) -> Data:
    """Query vectors, stored [1, rows, width]."""
    return ops.learned_rows(name, "other", rows, width, stored=(1, rows, width))


def fill_queries(c: Any, memory: Data, *text: Data) -> Data:
    """The states of an encoder to n_queries vectors, by the Q-Former of c."""
    queries = learned_queries("query_tokens", c.n_queries, c.qformer.d_model)
    return ops.block(queries, "qformer.", c.qformer.fill, reads=(memory, *text))
