"""ALBERT: narrow tables led to wide layers, which share their weights: a group of layers is used again and again."""

from itertools import groupby
from typing import Any, ClassVar

from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.flow import Data, Unreachable, block, given, layers, linear
from paramcount.parts import task_heads as heads
from paramcount.parts.classic import first_pooled, multi_head, second_bias
from paramcount.parts.decoders import use_layer_norm
from paramcount.parts.encoders import embed_tokens, masked_head
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.tasks import BERT, LABELS, TaskHead
from paramcount.sizes import ConfigJson, FieldValues, Flag, Indices, Natural, Positive, Sizes, derived, hf, setting
from paramcount.sizes.conditions import padding_inside
from paramcount.sizes.derivations import class_ends, d_model_per_head, per_layer
from paramcount.sizes.rules import check_heads_fill

MATRICES = ("query", "key", "value", "dense")
HEAD = ("predictions.dense", "predictions.LayerNorm", "predictions.decoder", "predictions.bias")


MOST_INNER = 256  # each is walked


def group_of_each(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """Which group stands at each place; the reference spreads them evenly."""
    n_groups = c["n_layer_groups"]
    if type(n_groups) is not int or n_groups < 1:
        raise ParamcountError(f"= {describe_value(n_groups)}", where="num_hidden_groups", expected="a positive integer")
    return tuple(int(i / (c["n_layers"] / n_groups)) for i in per_layer(c))


def layers_of_a_group(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    n = js.get("inner_group_num", 1)
    if type(n) is not int or n > MOST_INNER:
        raise ParamcountError(
            f"= {describe_value(n)}", where="inner_group_num", expected=f"an integer of at most {MOST_INNER:,}"
        )
    return tuple(range(n))


class Albert(Sizes):
    """Source: arXiv:1909.11942, section 3; AlbertLayer of the reference."""

    reference = "AlbertForMaskedLM"
    task_heads = BERT | {"ForPreTraining": TaskHead(heads.order_pooled, LABELS, beside_lm_head=True)}
    conditions = (padding_inside(0),)

    vocab_size: Positive = hf()
    d_embedding: Positive = hf()
    d_model: Positive = hf()
    n_layers: Natural = hf()
    n_layer_groups: Positive = hf("num_hidden_groups")
    layer_groups: Indices = derived(group_of_each)
    inner_layers: Indices = derived(layers_of_a_group)
    n_heads: Positive = hf()
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf()
    n_positions: Positive = hf("max_position_embeddings")
    n_token_types: Positive = hf()
    pooled: Flag = derived(class_ends("Model", "ForMultipleChoice", "ForPreTraining", "ForSequenceClassification"))
    tie_word_embeddings: Flag = hf()

    prefix: ClassVar[str] = "albert."
    activation = setting("hidden_act", default="gelu_new")
    norm_eps = setting("layer_norm_eps", default=1e-12)
    first_position: ClassVar = 0
    norm = use_layer_norm

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def build(tokens: Data, segments: Data) -> Data:
            x = c.norm(embed_tokens(c, tokens, segments, c.d_embedding), "albert.embeddings.LayerNorm")
            x = linear(x, "albert.encoder.embedding_hidden_mapping_in", "other", c.d_model, bias=True)
            for index, places in groupby(c.layer_groups):
                x = group(c, x, index, len(tuple(places)))
            if c.pooled:
                x = first_pooled(x, "albert.pooler")
            return masked_head(c, x, HEAD, c.d_embedding, c.activation) if head else x

        return block(tokens, "", build, reads=(given("segments", "tokens", default=0),), part="encoder")

    def layer(c, x: Data) -> Data:
        x = c.norm(x + multi_head(c, x, "attention.", MATRICES, cached=False), "attention.LayerNorm")
        mlp = plain_mlp(x, ("ffn", "ffn_output"), "mlp", c.d_ff, activation=c.activation, bias=True)
        return c.norm(x + mlp, "full_layer_layer_norm")

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        spare = [index for index in range(c.n_layer_groups) if index not in c.layer_groups]
        x = given("hidden states", "tokens", c.d_model)
        unused = tuple(Unreachable(group(c, x, index, 1), "no layer uses this group") for index in spare)
        return (*second_bias(c, tokens, "predictions.bias"), *unused)

    def check(c) -> None:
        check_heads_fill(c)
        if len(c.layer_groups) != c.n_layers:
            found, sizes = (
                f"has {len(c.layer_groups)} entries for " + FieldName("n_layers") + f" = {c.n_layers}",
                (len(c.layer_groups), c.n_layers),
            )
            raise ParamcountError(found, where=FieldName("layer_groups"), expected="one per layer", sizes=sizes)
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
        x = block(x, name, lambda x: c.layer(x))
    return x if uses == 1 else layers(x, "", [("again", uses - 1)], lambda kind, x: again(c, x, names))


def again(c: Any, x: Data, names: list[str]) -> Data:
    for name in names:
        x = block(x, name, lambda x: c.layer(x), tied_to=name)
    return x
