"""Tables of what changed inside a model during a pass over a text."""

from __future__ import annotations

from collections.abc import Iterator

from paramcount.execution.text import TextRun, format_next_token, format_probability, format_token, format_tokens
from paramcount.execution.watching import LayerView
from paramcount.output.tables import Column, Table

KINDS = ("attention", "mixer", "mlp")  # what a layer adds to the residual stream
HEADINGS = {"attention": "attention adds", "mixer": "mixer adds", "mlp": "MLP adds"}
WIDEST_TOKEN = 13  # columns


def list_next_words(run: TextRun) -> list[str]:
    """The most likely next tokens and the notes, a line each."""
    words = map(format_next_token, run.next_words)
    return ["most likely next tokens:", *words, *run.notes]


def build_layer_table(run: TextRun) -> Table:
    """A row per layer: the residual stream of the last position, what is added to it, experts, and the logit lens."""
    kinds = [kind for kind in KINDS if any(kind in view.added for view in run.layers)]
    columns = [
        Column("layer", "layer"),
        Column("norm", "norm", show=lambda x: f"{x:,.4g}"),
        *(Column(f"{kind}_adds", HEADINGS[kind], show=format_share) for kind in kinds),
        Column("next", "next token", right=False),
        Column("probability", "probability", show=lambda x: "–" if x is None else format_probability(x)),
    ]
    has_experts = any(view.experts for view in run.layers)
    if has_experts:
        columns.append(Column("experts", "experts and their weights", right=False))
    rows = []
    for view in run.layers:
        id, probability = view.lens or (None, None)
        token = "–" if id is None else shorten(format_token(run.vocabulary.get(id)))
        row = [format_layer(view), view.norm, *(view.added.get(kind) for kind in kinds), token, probability]
        experts = " ".join(f"{i}:{weight:.2f}" for i, weight in view.experts)
        rows.append([*row, experts] if has_experts else row)
    below = ["", *list_attention(run), "", *list_next_words(run), "", *describe_columns(kinds, has_experts)]
    return Table(columns, rows, {}, [format_tokens(run)], below, wraps=has_experts)


def format_layer(view: LayerView) -> str:
    return ".".join(map(str, view.layer))


def format_share(share: float | None) -> str:
    """A share in percent.

    >>> format_share(0.5219), format_share(None)
    ('52.2%', '–')
    """
    return "–" if share is None else f"{100 * share:.1f}%"


def shorten(text: str) -> str:
    return text if len(text) <= WIDEST_TOKEN else f"{text[: WIDEST_TOKEN - 1]}…"


def list_attention(run: TextRun) -> Iterator[str]:
    """For each layer and head, the tokens that the last position attends to most, a line each."""
    if not any(view.heads for view in run.layers):
        return
    yield "attention weights of the last position"
    yield "layer head  most attended tokens"
    for view in run.layers:
        layer = format_layer(view)
        for head in view.heads:
            tokens = (
                f"{shorten(format_token(run.decoded[j])):<{WIDEST_TOKEN}} {format_share(share):>5}"
                for j, share in head.attended
            )
            yield f"{layer:>5} {head.head:>4}  {'  '.join(tokens)}"


def describe_columns(kinds: list[str], has_experts: bool) -> Iterator[str]:
    yield "norm: norm of the residual stream after the layer, at the last position"
    if kinds:
        yield "adds: norm of the block's contribution to the residual stream, as a percentage of that norm"
    yield "next token: the most likely token if this were the last layer (logit lens)"
    if has_experts:
        yield "experts: active experts at the last position, as index:weight"
