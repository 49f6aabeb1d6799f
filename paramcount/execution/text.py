"""Runs a model on a text: its tokens, the likeliest next ones, and what changes from layer to layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paramcount.checkpoints.folding import strip_indices
from paramcount.counting.sum_weights import list_flows
from paramcount.errors import ParamcountError, describe_value, join_words, make_printable
from paramcount.execution.evaluate import Value
from paramcount.execution.run import Limits, Run, prepare, read_config_beside, settle_sizes
from paramcount.execution.watching import LayerView, Watcher, to_dict
from paramcount.execution.weights import CheckpointWeights
from paramcount.flow import Data, Input, softmax_rows
from paramcount.flow.walk import list_steps
from paramcount.formats.files import expand_home
from paramcount.formats.tokenizer import tokenize_text
from paramcount.zoo import Model

MOST_TOKENS = 1_000_000
MOST_SHOWN = 40  # printed on one line
MOST_NAMES = 3  # tensors in a note


class NextToken(NamedTuple):
    """A candidate for the next token."""

    text: str | None  # None for an unused row of the embedding
    id: int
    probability: float


class TextRun(NamedTuple):
    """The result of a forward pass over a text."""

    tokens: tuple[str, ...]  # as text: " capital"; incomplete characters byte by byte
    ids: tuple[int, ...]
    shapes: tuple[tuple[str, tuple[int, ...]], ...]  # names and shapes of all intermediate values, in order
    next_words: tuple[NextToken, ...]  # likeliest first
    notes: tuple[str, ...]  # on storage and unused tensors
    layers: tuple[LayerView, ...]
    decoded: tuple[str, ...]  # what the decoder reads: `tokens`, unless an encoder reads them
    vocabulary: Mapping[int, str]

    def to_dict(self, *, watch: bool = False) -> dict[str, Any]:
        """The run as plain data for JSON, with `layers` if `watch`."""
        plain: dict[str, Any] = {
            "tokens": [{"text": token, "id": id} for token, id in zip(self.tokens, self.ids)],
            "intermediates": [{"name": name, "shape": list(shape)} for name, shape in self.shapes],
            "next_words": [word._asdict() for word in self.next_words],
            "notes": list(self.notes),
        }
        if not watch:
            return plain
        layers = [to_dict(view) for view in self.layers]
        for layer in layers:
            if layer["lens"]:
                layer["lens"]["text"] = self.vocabulary.get(layer["lens"]["id"])
        return plain | {"layers": layers}


class TextWatcher(Watcher):
    """A watcher that also records names and shapes."""

    def __init__(self, out: Data, *, keeps_maps: bool = False) -> None:
        super().__init__(out, keeps_maps=keeps_maps)
        self.shapes: list[tuple[str, tuple[int, ...]]] = []

    def see_step(self, value: Value, data: Data) -> None:
        place = value.name.removesuffix(".weight") or (
            f"layer {'.'.join(map(str, value.layer))}" if value.layer else ""
        )
        self.shapes.append((f"{place}: {value.operation}" if place else value.operation, value.array.shape))
        super().see_step(value, data)


def run_text(
    model: Model,
    weights: str,
    text: str,
    tokenizer: str | None = None,
    *,
    top: int = 5,
    keeps_maps: bool = False,
    report: Callable[[int, int], object] | None = None,
) -> TextRun:
    """The forward pass of a model over a text.

    `weights`: the path of a checkpoint. `tokenizer`: a tokenizer.json, by default the one next to the weights.
    `keeps_maps`: whether the views of the layers have whole attention maps. `report`: as in `run_loaded`.

    Units: probabilities from 0 to 1.
    Raises: ParamcountError as `paramcount.run` does, and for a text or a tokenizer.json that is invalid.
    """
    sizes, where = settle_sizes(model, weights), make_printable(model.id)
    if not model.reading.head:
        found = f"{make_printable(model.reading.reference)} has no LM head, so that it predicts no token"
        raise ParamcountError(found, where=where, expected="the config.json of a class with an LM head")
    out, _ = next(iter(list_flows(sizes, model.reading.head)))
    limits = Limits(out, sizes, where)
    most_words = limits.vocab_size or 1
    if type(top) is not int or not 1 <= top <= most_words:
        raise ParamcountError(f"= {describe_value(top)}", where="top", expected=f"an integer from 1 to {most_words}")
    evaluation = prepare(sizes, expand_home(weights), head=model.reading.head, where=where)
    source = evaluation.weights
    path = expand_home(tokenizer) if tokenizer else find_tokenizer(weights)
    tokens = tokenize_text(path, text, most=limits.n_positions or MOST_TOKENS)
    for i, (id, token) in enumerate(zip(tokens.ids, tokens.tokens)):
        if limits.vocab_size is not None and id >= limits.vocab_size:
            found = f"token {i}, '{make_printable(token, 60)}', has id {id}"
            raise ParamcountError(found, where="tokenizer", expected=f"an id from 0 to {limits.vocab_size - 1}")
    watcher = TextWatcher(evaluation.out, keeps_maps=keeps_maps)
    evaluation.observer, evaluation.report = watcher, report
    ids, inputs = place_tokens(model, weights, evaluation.out, tokens.ids)
    logits = Run(evaluation, ids, inputs, limits, watch=False).logits[-1]
    probabilities = softmax_rows(logits.astype(np.float64))
    likeliest = np.argsort(-probabilities, kind="stable")[:top].tolist()
    words = [NextToken(tokens.vocabulary.get(id), id, float(probabilities[id])) for id in likeliest]
    notes = describe_storage(source) if isinstance(source, CheckpointWeights) else ()
    layers = tuple(watcher.add_lens(evaluation))
    return TextRun(
        tokens=tokens.tokens,
        ids=tokens.ids,
        shapes=tuple(watcher.shapes),
        next_words=tuple(words),
        notes=tuple(notes),
        layers=layers,
        decoded=tokens.tokens if ids == tokens.ids else tuple(tokens.vocabulary.get(id, str(id)) for id in ids),
        vocabulary=tokens.vocabulary,
    )


def place_tokens(
    model: Model, weights: str, out: Data, ids: tuple[int, ...]
) -> tuple[tuple[int, ...], dict[str, tuple[int, ...]]]:
    """(ids that the decoder reads, further inputs).

    If there is an encoder, it reads the text, and the decoder reads the token that starts an output.
    """
    inputs = {data.operation.what for data, *_ in list_steps(out) if isinstance(data.operation, Input)}
    if "source tokens" not in inputs:
        return ids, {}
    document = model.reading.document or read_config_beside(weights) or {}
    start = document.get("decoder_start_token_id")
    if type(start) is not int:
        found = "has an encoder, and no decoder_start_token_id is known"
        raise ParamcountError(found, where=make_printable(model.id), expected="one in config.json")
    return (start,), {"source_tokens": ids}


def find_tokenizer(weights: str) -> Path:
    """The tokenizer.json next to the weights."""
    place = expand_home(weights)
    path = (place if place.is_dir() else place.parent) / "tokenizer.json"
    if not path.exists():
        expected = "a tokenizer.json next to the weights, or its path as --tokenizer FILE"
        raise ParamcountError("does not exist", where=make_printable(path), expected=expected)
    return path


def describe_storage(weights: CheckpointWeights) -> tuple[str, ...]:
    """The types of the weights, and the tensors that the pass does not use."""
    used = {name for source in weights.sources.values() for name in source.names}
    names = [name for name in weights.content.tensors if strip_indices(name) in used]
    types = dict.fromkeys(weights.content.tensors[name].format or "" for name in names)
    notes = [f"weights stored as {join_words(types, 'and')}, computed in float32"]
    unused = [make_printable(name, 80) for name in weights.content.tensors if strip_indices(name) not in used]
    if unused:
        more = f" and {len(unused) - MOST_NAMES:,} more" if len(unused) > MOST_NAMES else ""
        notes.append(f"unused tensors in the file: {', '.join(unused[:MOST_NAMES])}{more}")
    return tuple(notes)


def format_token(text: str | None) -> str:
    """A token in printable form: spaces as ␣, control characters escaped.

    >>> format_token(" capital"), format_token("\\n")
    ('␣capital', '\\\\n')
    """
    return "–" if text is None else make_printable(text.replace(" ", "␣"), 60) or "''"


def format_tokens(run: TextRun) -> str:
    """The tokens and their ids on one line; a long list is shortened in the middle."""
    pieces = [f"{format_token(token)} {id}" for token, id in zip(run.tokens, run.ids)]
    if len(pieces) > MOST_SHOWN:
        pieces[MOST_SHOWN // 2 : -MOST_SHOWN // 2] = ["…"]
    return f"{len(run.ids):,} token{'s'[: len(run.ids) != 1]}: {' · '.join(pieces)}"


def format_probability(probability: float) -> str:
    """A probability in percent.

    >>> format_probability(0.12345), format_probability(0.00001)
    ('12.35%', '< 0.01%')
    """
    return f"{100 * probability:.2f}%" if probability >= 0.00005 else "< 0.01%"


def format_next_token(word: NextToken) -> str:
    """A candidate on one line: probability, token, id."""
    return f"{format_probability(word.probability)}  {format_token(word.text)}  {word.id}"
