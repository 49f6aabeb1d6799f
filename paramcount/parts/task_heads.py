"""Heads of other tasks than language modelling: each takes hidden states to its outputs.

Their weights are of component `other`.

A head reads what a model's body hands out: the hidden state of every token, or the pooled one beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcount import flow as ops
from paramcount import parts
from paramcount.flow import Data

UNKNOWN = ops.Unknown("pooling")

Build = Callable[[Any, Data], Data]  # (config, hidden states) to the outputs of a task


def attach(c: Any, build: Build, x: Data) -> Data:
    """The outputs of a head, which belongs to the part of the model that it stands on."""
    return ops.block(x, "", lambda x: build(c, x), part=x.part) if x.part else build(c, x)


def score(name: str, n: int | None = None, *, bias: bool = True) -> Build:
    """Every token through one matrix, to `n` outputs; default: one per label."""
    return lambda c, x: ops.linear(x, name, "other", c.n_labels if n is None else n, bias=bias)


def of_last_position(build: Build) -> Build:
    return lambda c, x: ops.pool_text(build(c, x), "last position")


def of_pooled(build: Build) -> Build:
    """The pooled vector, which stands beside what x is made of and is as wide as the model."""
    return lambda c, x: build(c, ops.second_value(x, c.d_model))


def through(
    dense: str,
    last: str,
    n: int | None = None,
    *,
    activation: str = "tanh",
    by: str = "",
    every_token: bool = False,
) -> Build:
    """The first token's vector through a matrix as wide as itself, then to `n` outputs; default: one per label.

    `by`: the setting that has the activation. `every_token`: instead of the first one.
    """

    def build(c: Any, x: Data) -> Data:
        h = ops.linear(x if every_token else ops.first_token(x), dense, "other", x.shape[-1], bias=True)
        return score(last, n)(c, ops.activate(h, parts.get_setting(c, by) if by else activation))

    return build


# Source: modeling_layers.py of the reference, GenericForSequenceClassification and the classes beside it.
score_last: Build = of_last_position(score("score", bias=False))
score_tokens: Build = score("score")
classify_tokens: Build = score("classifier")
find_span: Build = score("qa_outputs", 2)  # where an answer begins and ends


def score_as_set(c: Any, x: Data) -> Data:
    """Scores of the last position, of the first, or their mean. Source: CohereCompassTextForSequenceClassification."""
    pooling, scores = parts.get_setting(c, "pooling"), score("score", bias=False)(c, x)
    if pooling == "bos":
        return ops.first_token(scores)
    if pooling == "eos":
        return ops.pool_text(scores, "last position")
    return ops.pool_text(scores, "mean" if pooling == "mean" else UNKNOWN)


def classify_bigbird_span(c: Any, x: Data) -> Data:
    """BigBird's: an MLP, its norm, then the span."""
    names = ("qa_classifier.intermediate.dense", "qa_classifier.output.dense")
    y = parts.plain_mlp(x, names, "other", c.d_ff, activation=parts.get_setting(c, "activation"), bias=True)
    h = ops.layer_norm(x + y, "qa_classifier.output.LayerNorm", parts.get_setting(c, "norm_eps"))
    return ops.linear(h, "qa_classifier.qa_outputs", "other", 2, bias=True)


def summary(c: Any, x: Data, name: str, n_labels: Any) -> Data:
    """One vector for the text, through a matrix where the config asks for it: to labels, or as wide as the model."""
    one = ops.pool_text(x, ops.Unknown("summary_type"))
    width = n_labels if c.summary_to_labels else c.d_model
    return ops.linear(one, f"{name}.summary", "other", width, bias=True) if c.summary_projected else one


def summarise(c: Any, x: Data) -> Data:
    return summary(c, x, "sequence_summary", c.n_labels)


def summarise_then(last: str, n: int | None = None) -> Build:
    return lambda c, x: score(last, n)(c, summarise(c, x))


def choose_by_summary(c: Any, x: Data) -> Data:
    """The second head of GPT's double-head classes: one score for each of several texts."""
    return summary(c, x, "multiple_choice_head", 1)


def detect_replaced(**activation: str) -> Build:
    """ELECTRA's discriminator: whether a token was replaced."""
    names = ("discriminator_predictions.dense", "discriminator_predictions.dense_prediction")
    return through(*names, 1, every_token=True, **activation)


def find_span_in_beams(prefix: str) -> Build:
    """XLNet's and XLM's heads for SQuAD: the beginning, the end given the beginning, and whether there is an answer."""

    def build(c: Any, x: Data) -> Data:
        start = ops.linear(x, f"{prefix}start_logits.dense", "other", 1, bias=True)
        both = ops.join(x, ops.best_position(x, start))
        h = ops.activate(ops.linear(both, f"{prefix}end_logits.dense_0", "other", c.d_model, bias=True), "tanh")
        h = ops.layer_norm(h, f"{prefix}end_logits.LayerNorm", parts.get_setting(c, "norm_eps"))
        end = ops.linear(h, f"{prefix}end_logits.dense_1", "other", 1, bias=True)
        ends = ops.join(ops.weighted_mean(x, start), ops.pool_text(x, "last position"))
        answer = ops.activate(ops.linear(ends, f"{prefix}answer_class.dense_0", "other", c.d_model, bias=True), "tanh")
        return ops.bundle(start, end, ops.linear(answer, f"{prefix}answer_class.dense_1", "other", 1))

    return build


def classify_normed(c: Any, x: Data) -> Data:
    """ModernBERT's: a matrix and a norm before the labels."""
    h = ops.activate(ops.linear(x, "head.dense", "other", x.shape[-1], bias=c.transform_bias), "gelu")
    h = ops.layer_norm(h, "head.norm", parts.get_setting(c, "norm_eps"), bias=c.norm_bias)
    return ops.pool_text(ops.linear(h, "classifier", "other", c.n_labels, bias=c.transform_bias), "last position")


def pool_as_set(c: Any, x: Data) -> Data:
    """One vector for the text: of the first token, or the mean."""
    pooling = parts.get_setting(c, "pooling")
    return (
        ops.first_token(x) if pooling in ("bos", "cls") else ops.pool_text(x, "mean" if pooling == "mean" else UNKNOWN)
    )


def classify_pooled_as_set(c: Any, x: Data) -> Data:
    """UltraBERT's."""
    return classify_tokens(c, pool_as_set(c, x))


def classify_transformed(*, is_pooled: bool) -> Build:
    """ModernVBERT's, of every token or of the pooled vector."""

    def build(c: Any, x: Data) -> Data:
        return classify_tokens(c, c.language.transform(pool_as_set(c, x) if is_pooled else x, "head."))

    return build


def transform_then(n: int | None = None, *, is_pooled: bool) -> Build:
    """The same as ModernBERT's encoder has it, of every token or of the pooled vector."""

    def build(c: Any, x: Data) -> Data:
        h = ops.linear(pool_as_set(c, x) if is_pooled else x, "head.dense", "other", x.shape[-1], bias=c.transform_bias)
        h = ops.activate(h, parts.get_setting(c, "transform_activation"))
        h = ops.layer_norm(h, "head.norm", parts.get_setting(c, "norm_eps"), bias=c.norm_bias)
        return score("classifier", n)(c, h)

    return build


def classify_before_mean(c: Any, x: Data) -> Data:
    """EuroBERT's: the mean of the labels of all tokens, or the labels of a pooled vector."""
    is_late = parts.get_setting(c, "pooling") == "late"
    h = ops.activate(ops.linear(x if is_late else pool_as_set(c, x), "dense", "other", x.shape[-1], bias=True), "gelu")
    labels = classify_tokens(c, h)
    return ops.pool_text(labels, "mean") if is_late else labels


def classify_heard(c: Any, x: Data) -> Data:
    """Whisper's: states of the encoder, of all its layers where they are weighted, averaged over time."""
    if c.weighted_layers:
        x = ops.sum_of_layers(x, "layer_weights", c.n_encoder_layers + 1)
    h = ops.linear(x, "projector", "other", c.d_projected, bias=True)
    return ops.linear(ops.pool_text(h, "mean"), "classifier", "other", c.n_labels, bias=True)
