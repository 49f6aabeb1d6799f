"""Heads of other tasks than language modelling: each takes hidden states to its outputs.

Their weights are of component `other`.

A head reads what a model's body hands out: the hidden state of every token, or the pooled one beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcount.flow import (
    Data,
    Unknown,
    activate,
    best_position,
    block,
    bundle,
    first_token,
    join,
    layer_norm,
    linear,
    pool_text,
    second_value,
    sum_of_layers,
    weighted_mean,
)  # fmt: skip
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.settings import get_setting

UNKNOWN = Unknown("pooling")

Build = Callable[[Any, Data], Data]  # (config, hidden states) to the outputs of a task


def attach(c: Any, build: Build, x: Data) -> Data:
    """The outputs of a head, which belongs to the part of the model that it stands on."""
    return block(x, "", lambda x: build(c, x), part=x.part) if x.part else build(c, x)


def score_last(c: Any, x: Data) -> Data:
    """Scores of the last position. Source: GenericForSequenceClassification in modeling_layers.py of the reference."""
    return pool_text(linear(x, "score", "other", c.n_labels), "last position")


def score_as_set(c: Any, x: Data) -> Data:
    """Scores of the last position, of the first, or their mean. Source: CohereCompassTextForSequenceClassification."""
    pooling, scores = get_setting(c, "pooling"), linear(x, "score", "other", c.n_labels)
    if pooling == "bos":
        return first_token(scores)
    if pooling == "eos":
        return pool_text(scores, "last position")
    return pool_text(scores, "mean" if pooling == "mean" else UNKNOWN)


def score_last_unnamed_bias(c: Any, x: Data) -> Data:
    """The same, as CTRLForSequenceClassification names it."""
    return pool_text(linear(x, "classifier", "other", c.n_labels), "last position")


def score_tokens(c: Any, x: Data) -> Data:
    """Scores of every token. Source: GenericForTokenClassification in modeling_layers.py of the reference."""
    return linear(x, "score", "other", c.n_labels, bias=True)


def classify_tokens(c: Any, x: Data) -> Data:
    return linear(x, "classifier", "other", c.n_labels, bias=True)


def find_span(c: Any, x: Data) -> Data:
    """Where an answer begins and ends. Source: GenericForQuestionAnswering in modeling_layers.py of the reference."""
    return linear(x, "qa_outputs", "other", 2, bias=True)


def pooled(c: Any, x: Data) -> Data:
    """The pooled vector, which stands beside what x is made of and is as wide as the model."""
    return second_value(x, c.d_model)


def classify_pooled(c: Any, x: Data) -> Data:
    return classify_tokens(c, pooled(c, x))


def choose_pooled(c: Any, x: Data) -> Data:
    """One score for each of several texts."""
    return linear(pooled(c, x), "classifier", "other", 1, bias=True)


def follow_pooled(c: Any, x: Data) -> Data:
    """Whether one sentence follows the other."""
    return linear(pooled(c, x), "cls.seq_relationship", "other", 2, bias=True)


def order_pooled(c: Any, x: Data) -> Data:
    """ALBERT's sentence order."""
    return linear(pooled(c, x), "sop_classifier.classifier", "other", c.n_labels, bias=True)


def dense_then(name: str, last: str, activation: str | None = "tanh") -> Build:
    """The first token's vector through a matrix as wide as itself, then to labels. `activation`: None for that of the
    layers."""

    def build(c: Any, x: Data) -> Data:
        first = first_token(x)
        h = linear(first, f"{name}.dense", "other", x.shape[-1], bias=True)
        h = activate(h, get_setting(c, "activation") if activation is None else activation)
        return linear(h, f"{name}.{last}", "other", c.n_labels, bias=True)

    return build


classify_first = dense_then("classifier", "out_proj")  # RoBERTa
classify_first_by_activation = dense_then("classifier", "out_proj", None)  # Nyströmformer
classify_end = dense_then("classification_head", "out_proj")  # BART: the vector of the end token


def classify_first_activated(c: Any, x: Data) -> Data:
    """ConvBERT's: with the activation of its MLPs."""
    h = linear(first_token(x), "classifier.dense", "other", x.shape[-1], bias=True)
    return linear(activate(h, get_setting(c, "activation")), "classifier.out_proj", "other", c.n_labels, bias=True)


def preclassified(n: Callable[[Any], Any]) -> Build:
    """DistilBERT's: `n` outputs."""

    def build(c: Any, x: Data) -> Data:
        h = activate(linear(first_token(x), "pre_classifier", "other", x.shape[-1], bias=True), "relu")
        return linear(h, "classifier", "other", n(c), bias=True)

    return build


def classify_bigbird_span(c: Any, x: Data) -> Data:
    """BigBird's: an MLP, its norm, then the span."""
    names = ("qa_classifier.intermediate.dense", "qa_classifier.output.dense")
    y = plain_mlp(x, names, "other", c.d_ff, activation=get_setting(c, "activation"), bias=True)
    h = layer_norm(x + y, "qa_classifier.output.LayerNorm", get_setting(c, "norm_eps"))
    return linear(h, "qa_classifier.qa_outputs", "other", 2, bias=True)


def detect_replaced(c: Any, x: Data, activation: str | Unknown = "gelu") -> Data:
    """ELECTRA's discriminator: whether a token was replaced."""
    h = activate(linear(x, "discriminator_predictions.dense", "other", x.shape[-1], bias=True), activation)
    return linear(h, "discriminator_predictions.dense_prediction", "other", 1, bias=True)


def detect_replaced_as_activated(c: Any, x: Data) -> Data:
    """Funnel's: with the activation of its MLPs."""
    return detect_replaced(c, x, get_setting(c, "activation"))


def classify_first_hidden(n: Callable[[Any], Any]) -> Build:
    """Funnel's: `n` outputs."""

    def build(c: Any, x: Data) -> Data:
        h = activate(linear(first_token(x), "classifier.linear_hidden", "other", x.shape[-1], bias=True), "tanh")
        return linear(h, "classifier.linear_out", "other", n(c), bias=True)

    return build


def summary(c: Any, x: Data, name: str, n_labels: Any) -> Data:
    """One vector for the text, through a matrix where the config asks for it: to labels, or as wide as the model."""
    one = pool_text(x, Unknown("summary_type"))
    return (
        linear(one, f"{name}.summary", "other", n_labels if c.summary_to_labels else c.d_model, bias=True)
        if c.summary_projected
        else one
    )


def summarise(c: Any, x: Data) -> Data:
    return summary(c, x, "sequence_summary", c.n_labels)


def summarise_then(last: str, n: Callable[[Any], Any]) -> Build:
    return lambda c, x: linear(summarise(c, x), last, "other", n(c), bias=True)


def choose_by_summary(c: Any, x: Data) -> Data:
    """The second head of GPT's double-head classes: one score for each of several texts."""
    return summary(c, x, "multiple_choice_head", 1)


def find_span_in_beams(prefix: str) -> Build:
    """XLNet's and XLM's heads for SQuAD: the beginning, the end given the beginning, and whether there is an answer."""

    def build(c: Any, x: Data) -> Data:
        start = linear(x, f"{prefix}start_logits.dense", "other", 1, bias=True)
        both = join(x, best_position(x, start))
        h = activate(linear(both, f"{prefix}end_logits.dense_0", "other", c.d_model, bias=True), "tanh")
        h = layer_norm(h, f"{prefix}end_logits.LayerNorm", get_setting(c, "norm_eps"))
        end = linear(h, f"{prefix}end_logits.dense_1", "other", 1, bias=True)
        ends = join(weighted_mean(x, start), pool_text(x, "last position"))
        answer = activate(linear(ends, f"{prefix}answer_class.dense_0", "other", c.d_model, bias=True), "tanh")
        return bundle(start, end, linear(answer, f"{prefix}answer_class.dense_1", "other", 1))

    return build


def classify_normed(c: Any, x: Data) -> Data:
    """ModernBERT's: a matrix and a norm before the labels."""
    h = activate(linear(x, "head.dense", "other", x.shape[-1], bias=c.transform_bias), "gelu")
    h = layer_norm(h, "head.norm", get_setting(c, "norm_eps"), bias=c.norm_bias)
    return pool_text(linear(h, "classifier", "other", c.n_labels, bias=c.transform_bias), "last position")


def pool_as_set(c: Any, x: Data) -> Data:
    """One vector for the text: of the first token, or the mean."""
    pooling = get_setting(c, "pooling")
    return first_token(x) if pooling in ("bos", "cls") else pool_text(x, "mean" if pooling == "mean" else UNKNOWN)


def classify_pooled_as_set(c: Any, x: Data) -> Data:
    """UltraBERT's."""
    return classify_tokens(c, pool_as_set(c, x))


def classify_transformed(*, is_pooled: bool) -> Build:
    """ModernVBERT's, of every token or of the pooled vector."""

    def build(c: Any, x: Data) -> Data:
        return classify_tokens(c, c.language.transform(pool_as_set(c, x) if is_pooled else x, "head."))

    return build


def transform_then(n: Callable[[Any], Any], *, is_pooled: bool) -> Build:
    """The same as ModernBERT's encoder has it, of every token or of the pooled vector: `n` outputs."""

    def build(c: Any, x: Data) -> Data:
        h = linear(pool_as_set(c, x) if is_pooled else x, "head.dense", "other", x.shape[-1], bias=c.transform_bias)
        h = activate(h, get_setting(c, "transform_activation"))
        h = layer_norm(h, "head.norm", get_setting(c, "norm_eps"), bias=c.norm_bias)
        return linear(h, "classifier", "other", n(c), bias=True)

    return build


def classify_before_mean(c: Any, x: Data) -> Data:
    """EuroBERT's: the mean of the labels of all tokens, or the labels of a pooled vector."""
    is_late = get_setting(c, "pooling") == "late"
    h = activate(linear(x if is_late else pool_as_set(c, x), "dense", "other", x.shape[-1], bias=True), "gelu")
    labels = classify_tokens(c, h)
    return pool_text(labels, "mean") if is_late else labels


def classify_by_pooler(n: Callable[[Any], Any]) -> Build:
    """DeBERTa's: the first token's vector through a pooler, whose size is the model's: `n` outputs."""

    def build(c: Any, x: Data) -> Data:
        h = linear(first_token(x), "pooler.dense", "other", x.shape[-1], bias=True)
        return linear(activate(h, get_setting(c, "pooler_activation")), "classifier", "other", n(c), bias=True)

    return build


def score_projected(c: Any, x: Data) -> Data:
    """T5Gemma's."""
    return linear(x, "score.out_proj", "other", c.n_labels, bias=True)


def classify_heard(c: Any, x: Data) -> Data:
    """Whisper's: states of the encoder, of all its layers where they are weighted, averaged over time."""
    if c.weighted_layers:
        x = sum_of_layers(x, "layer_weights", c.n_encoder_layers + 1)
    h = linear(x, "projector", "other", c.d_projected, bias=True)
    return linear(pool_text(h, "mean"), "classifier", "other", c.n_labels, bias=True)
