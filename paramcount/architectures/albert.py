"""ALBERT: narrow tables led to wide layers, which share their weights: a group of layers is used again and again."""

from itertools import groupby
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

MATRICES = ("query", "key", "value", "dense")
HEAD = ("predictions.dense", "predictions.LayerNorm", "predictions.decoder", "predictions.bias")


MOST_INNER = 256  # each is walked


def group_of_each(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """Which group stands at each place; the reference spreads them evenly."""
    n_groups = c["n_layer_groups"]
    if type(n_groups) is not int or n_groups < 1:
        raise sizes.make_value_error(n_groups, "num_hidden_groups", "a positive integer")
    return tuple(int(i / (c["n_layers"] / n_groups)) for i in sizes.per_layer(c))


def layers_of_a_group(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    n = js.get("inner_group_num", 1)
    if type(n) is not int or n > MOST_INNER:
        raise sizes.make_value_error(n, "inner_group_num", f"an integer of at most {MOST_INNER:,}")
    return tuple(range(n))


class Albert(parts.EncoderFlow):
    """Source: arXiv:1909.11942, section 3; AlbertLayer of the reference."""

    reference = "AlbertForMaskedLM"
    task_heads = parts.tasks.BERT | {
        "ForPreTraining": parts.TaskHead(
            parts.of_pooled(parts.score("sop_classifier.classifier")), parts.LABELS, beside_lm_head=True
        )
    }
    conditions = (sizes.padding_inside(0),)
    prefix = "albert."
    head_names = HEAD
    reads_source = False

    vocab_size: sizes.Positive = sizes.hf()
    d_embedding: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_layer_groups: sizes.Positive = sizes.hf("num_hidden_groups")
    layer_groups: sizes.Indices = sizes.derived(group_of_each)
    inner_layers: sizes.Indices = sizes.derived(layers_of_a_group)
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    n_token_types: sizes.Positive = sizes.hf()
    pooled: sizes.Flag = sizes.derived(
        sizes.class_ends("Model", "ForMultipleChoice", "ForPreTraining", "ForSequenceClassification")
    )
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def width(c) -> ops.Size:
        return c.d_embedding

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = super().embed(tokens, *reads)
        return ops.linear(x, "albert.encoder.embedding_hidden_mapping_in", "other", c.d_model, bias=True)

    def encode(c, x: Data, *memory: Data) -> Data:
        for index, places in groupby(c.layer_groups):
            x = group(c, x, index, len(tuple(places)))
        return parts.first_pooled(x, "albert.pooler") if c.pooled else x

    def layer(c, x: Data) -> Data:
        x = c.norm(x + parts.multi_head(c, x, "attention.", MATRICES), "attention.LayerNorm")
        mlp = parts.plain_mlp(x, ("ffn", "ffn_output"), "mlp", c.d_ff, activation=c.activation, bias=True)
        return c.norm(x + mlp, "full_layer_layer_norm")

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        spare = [index for index in range(c.n_layer_groups) if index not in c.layer_groups]
        x = ops.given("hidden states", "tokens", c.d_model)
        unused = tuple(ops.Unreachable(group(c, x, index, 1), "no layer uses this group") for index in spare)
        return (*parts.second_bias(c, tokens, "predictions.bias"), *unused)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        if len(c.layer_groups) != c.n_layers:
            found, widths = (
                f"has {len(c.layer_groups)} entries for " + FieldName("n_layers") + f" = {c.n_layers}",
                (len(c.layer_groups), c.n_layers),
            )
            raise ParamcountError(found, where=FieldName("layer_groups"), expected="one per layer", sizes=widths)
        if list(c.layer_groups) != sorted(c.layer_groups):
            raise ParamcountError(
                "does not list the groups in ascending order",
                where=FieldName("layer_groups"),
                expected="ascending group indices",
            )


def group(c: Any, x: Data, index: int, uses: int) -> Data:
    """A group of layers, used so many times in a row."""
    names = [f"albert.encoder.albert_layer_groups.{index}.albert_layers.{i}." for i in c.inner_layers]
    for name in names:
        x = ops.block(x, name, lambda x: c.layer(x))
    return x if uses == 1 else ops.layers(x, "", [("again", uses - 1)], lambda kind, x: again(c, x, names))


def again(c: Any, x: Data, names: list[str]) -> Data:
    for name in names:
        x = ops.tie_weights(ops.block(x, name, lambda x: c.layer(x)), name)
    return x
