"""Funnel Transformer: each block of layers after the first halves the text; a decoder restores its length.

The positions are sinusoids with a key matrix of their own, as in XLNet.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

TABLE = "funnel.embeddings.word_embeddings.weight"
BLOCK = "funnel.encoder.blocks.{}."
HIDDEN = ("classifier.linear_hidden", "classifier.linear_out")
MOST_REPEATS = 256  # each is walked


def shortest_text(c: Any, tokens: Data) -> Data:
    """Funnel's blocks without its decoder."""
    return c.pooled_body(tokens)


def no_number_of_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference computes these."""
    for key in ("num_hidden_layers", "num_blocks"):
        if key in js:
            raise ParamcountError("is set, but follows from block_sizes", where=key, expected="no such key")


def one_each(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    return (1,) * len(c["block_sizes"])


class Funnel(parts.Headed):
    """Of each block: how many layers it has and how often each of them runs.

    Source: arXiv:2006.03236, section 2; FunnelModel of the reference.
    """

    reference = "FunnelForMaskedLM"
    task_heads = {
        "ForPreTraining": parts.TaskHead(parts.detect_replaced(by="activation"), {}),
        "ForSequenceClassification": parts.TaskHead(parts.through(*HIDDEN), parts.LABELS, body=shortest_text),
        "ForMultipleChoice": parts.TaskHead(parts.through(*HIDDEN, 1), {}, body=shortest_text),
        "ForTokenClassification": parts.TOKENS,
        "ForQuestionAnswering": parts.SPAN_OF_LABELS,
    }
    conditions = (
        no_number_of_layers,
        sizes.padding_in_table(None),
        sizes.one_of("pooling_type", ("mean", "max"), "mean"),
        sizes.one_of("attention_type", ("relative_shift", "factorized"), "relative_shift"),
    )

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf("hidden_size", "d_model")
    block_sizes: sizes.Indices = sizes.hf("block_sizes")
    block_repeats: sizes.Indices = sizes.hf("block_repeats", absent=one_each, null=one_each)
    n_decoder_layers: sizes.Natural = sizes.hf("num_decoder_layers")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_head")
    d_head: sizes.Positive = sizes.hf("d_head")
    d_ff: sizes.Natural = sizes.hf("d_inner")
    first_apart: sizes.Flag = sizes.hf("separate_cls")
    queries_pooled_alone: sizes.Flag = sizes.hf("pool_q_only")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    activation = sizes.setting("hidden_act")
    norm_eps = sizes.setting("layer_norm_eps")
    norm = parts.use_layer_norm

    def forward(c, tokens: Data, head: bool = True) -> Data:
        segments = ops.given("segments", "tokens", default=0)
        return ops.block(tokens, "", lambda t, s: c.decode(t, s, head=head), reads=(segments,), part="encoder")

    def pooled_body(c, tokens: Data) -> Data:
        """Without the decoder: the states of the shortest text."""
        segments = ops.given("segments", "tokens", default=0)
        return ops.block(
            tokens, "", lambda t, s: c.encode(t, ops.compare_segments(s))[0], reads=(segments,), part="encoder"
        )

    def decode(c, tokens: Data, segments: Data, *, head: bool) -> Data:
        """The states of the shortest text, each repeated, plus those of the first block, through a few more layers."""
        same = ops.compare_segments(segments)
        last, first = c.encode(tokens, same)
        x = Data("repeat tokens", (last, first), first.shape) + first if len(c.block_sizes) > 1 else last + first
        kinds = [("layer", c.n_decoder_layers)]
        x = ops.layers(
            x, "funnel.decoder.layers.{layer}.", kinds, lambda kind, x, same: c.layer(x, same), reads=(same,)
        )
        return c.head(x) if head else x

    def head(c, x: Data) -> Data:
        return parts.head(c, x, TABLE, bias=True)

    def encode(c, tokens: Data, same: Data) -> tuple[Data, Data]:
        """The states after the last block, and those that the decoder reads."""
        x = c.norm(ops.lookup(tokens, TABLE, "embedding", c.vocab_size, c.d_model), "funnel.embeddings.layer_norm")
        x, first = c.first_block(x, same)
        for b, (n, repeats) in list(enumerate(zip(c.block_sizes, c.block_repeats)))[1:]:
            if n and repeats:
                name = BLOCK.format(b)
                x, same = c.narrow(x, same, name + "0.", repeats)
                x = c.stack(x, same, name, n - 1, repeats, start=1)
        return x, first

    def first_block(c, x: Data, same: Data) -> tuple[Data, Data]:
        """The decoder reads the states after as many steps as this block has layers, even if layers run repeatedly."""
        n, repeats, name = c.block_sizes[0], c.block_repeats[0], BLOCK.format(0)
        if not n or not repeats:
            return x, x
        whole, left = divmod(n, repeats)
        x = c.stack(x, same, name, whole, repeats)
        if not left:
            return c.stack(x, same, name, n - whole, repeats, start=whole), x
        first = c.repeat(ops.block(x, f"{name}{whole}.", c.layer, reads=(same,)), same, f"{name}{whole}.", left - 1)
        x = c.repeat(first, same, f"{name}{whole}.", repeats - left)
        return c.stack(x, same, name, n - whole - 1, repeats, start=whole + 1), first

    def stack(c, x: Data, same: Data, name: str, n: int, repeats: int, start: int = 0) -> Data:
        """Some layers of a block, each so many times in a row."""

        def run(kind: str, x: Data, same: Data) -> Data:
            x = c.layer(x, same)
            for _ in range(repeats - 1):
                x = ops.tie_weights(ops.block(x, "", c.layer, reads=(same,)), name + "{layer}.")
            return x

        return ops.layers(x, name + "{layer}.", [("layer", n)], run, reads=(same,), first=start) if n else x

    def repeat(c, x: Data, same: Data, name: str, times: int) -> Data:
        """A layer again, with the same weights."""
        for _ in range(times):
            x = ops.tie_weights(ops.block(x, name, c.layer, reads=(same,)), name)
        return x

    def narrow(c, x: Data, same: Data, name: str, repeats: int) -> tuple[Data, Data]:
        """The first layer of a block: means of two adjacent tokens, or their largest values, attend to all tokens, or
        to one another.
        """
        pooled = Data("pool adjacent tokens", (x,), ("blocks", c.d_model))
        shorter = Data("every other row and column", (same,), ("blocks", "blocks"))
        if c.queries_pooled_alone:
            rows = Data("every other row", (same,), ("blocks", same.shape[1]))
            y = ops.block(pooled, name, c.layer, reads=(rows, x))
        else:
            y = ops.block(pooled, name, c.layer, reads=(shorter,))
        return c.repeat(y, shorter, name, repeats - 1), shorter

    def layer(c, x: Data, same: Data, memory: Data | None = None) -> Data:
        x = c.norm(x + c.attention(x, x if memory is None else memory, same), "attention.layer_norm")
        y = parts.plain_mlp(x, ("ffn.linear_1", "ffn.linear_2"), "mlp", c.d_ff, activation=c.activation, bias=True)
        return c.norm(x + y, "ffn.layer_norm")

    def attention(c, x: Data, memory: Data, same: Data) -> Data:
        """The scores are the sum of three terms: content, relative position and relative segment."""
        heads = (c.n_heads, c.d_head)
        q = ops.linear(x, "attention.q_head", "qkv.q", heads)
        k, v = (ops.linear(memory, f"attention.{name}_head", f"qkv.{name}", heads, bias=True) for name in "kv")
        vectors, index = c.distances(x, memory)
        kernel = ops.Weight("attention.r_kernel", "qkv.k", (c.d_model, *heads))
        r = Data(ops.Linear(transposed=True), (vectors,), (*vectors.shape[:1], *heads), (kernel,))
        segments = ops.Weight("attention.seg_embed", "other_embedding", (2, *heads))
        at_content, at_distance, at_segment = (c.add_bias(q, name) for name in "wrs")
        by_distance = ops.select_by_pair(index, ops.score_keys(at_distance, r), axis=2)
        by_segment = ops.select_by_pair(same, ops.score_keys(at_segment, segments), axis=2)
        biases = [
            Data("not of the first token", (y,), y.shape) if c.first_apart else y for y in (by_distance, by_segment)
        ]
        a = ops.attend(at_content, k, v, *biases, scale=1.0)  # [n, n_heads, d_head]
        return ops.linear(a, "attention.post_proj", "output_projection", c.d_model, bias=True)

    def distances(c, x: Data, memory: Data) -> tuple[Data, Data]:
        """The fixed vectors of distances, and which of them is whose."""
        if x.shape[0] != "blocks":
            return ops.distance_sinusoids(x, causal=False), ops.index_distances(x)
        vectors = Data("sines of the distance", (memory,), ("distances", c.d_model))
        return vectors, Data("distances of pooled tokens", (x, memory), (x.shape[0], memory.shape[0]))

    def add_bias(c, q: Data, name: str) -> Data:
        """A query for one of the terms, divided by √d_head, which the scores are."""
        biased = ops.add_vector(q, f"attention.r_{name}_bias", "qkv.q", c.n_heads, c.d_head)
        return ops.scale_by_root(biased, c.d_head, "divided by √d_head", inverse=True)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        x, same = ops.given("hidden states", "tokens", c.d_model), ops.given("same segment", "tokens", "tokens")
        unused = [b for b, (n, repeats) in enumerate(zip(c.block_sizes, c.block_repeats)) if n and not repeats]
        return tuple(
            ops.Unreachable(c.stack(x, same, BLOCK.format(b), c.block_sizes[b], 1), "its block runs no times")
            for b in unused
        )

    def check(c) -> None:
        sizes.check_even(c, "d_model")
        where, n_blocks = FieldName("block_repeats"), len(c.block_sizes)
        if not n_blocks:
            raise ParamcountError("is empty", where=FieldName("block_sizes"), expected="one number per block")
        if len(c.block_repeats) != n_blocks:
            found = f"has {len(c.block_repeats)} entries for {n_blocks} blocks"
            raise ParamcountError(found, where=where, expected="one per block", sizes=(len(c.block_repeats), n_blocks))
        if max(c.block_repeats) > MOST_REPEATS:
            found = f"= {max(c.block_repeats):,}"
            raise ParamcountError(found, where=where, expected=f"at most {MOST_REPEATS:,}")
        if c.block_sizes[0] and not c.block_repeats[0]:
            raise ParamcountError("= 0 for the first block, which the decoder reads", where=where, expected="1 or more")
        steps = [bool(n and repeats) for n, repeats in zip(c.block_sizes, c.block_repeats)][1:]
        if steps != sorted(steps, reverse=True):
            found = "has a block without layers between others"
            raise ParamcountError(found, where=FieldName("block_sizes"), expected="1 or more layers per block")
