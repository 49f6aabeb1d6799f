"""Runs a model on token ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from paramcount.counting.sum_weights import list_flows
from paramcount.counting.tensors import list_tensors
from paramcount.errors import ParamcountError, join_words, make_printable
from paramcount.execution.evaluate import Evaluation, Observer, Value, Weights, fill_indices
from paramcount.execution.inputs import check_inputs, omit_missing
from paramcount.execution.memory import check_memory, estimate_memory
from paramcount.execution.weights import StoredWeights, open_weights
from paramcount.flow import Data, Fourier, Hide, Input
from paramcount.flow.caches import find_attentions
from paramcount.flow.operation import Array, Unknown
from paramcount.flow.positions import count_positions
from paramcount.flow.walk import list_rows, list_steps
from paramcount.formats.files import expand_home, read_text
from paramcount.formats.strict_json import parse_json
from paramcount.sizes import Sizes
from paramcount.sizes.reading import with_document
from paramcount.zoo import Model

LARGEST_CONFIG = 4 << 20  # bytes


class Recorder(Observer):
    """Keeps all intermediate values."""

    def __init__(self, steps: list[Value]) -> None:
        self.steps = steps

    def see_step(self, value: Value, data: Data) -> None:
        self.steps.append(value)


class Run:
    """A forward pass over some tokens; `append` continues it with more.

    logits: float32 [n, vocab_size], for each of the n tokens the logits of the token after it
    steps: with `watch`, every intermediate value in order: (name, operation, layer, array)
    """

    def __init__(
        self, evaluation: Evaluation, tokens: Sequence[int], inputs: Mapping[str, Any], limits: Limits, watch: bool
    ) -> None:
        self._evaluation, self._inputs, self._limits, self._watch = evaluation, inputs, limits, watch
        self.steps: list[Value] = []
        ids = limits.check_tokens(tokens, evaluation.n_past)
        check_memory(estimate_memory(evaluation.out, len(ids), evaluation.n_past, keeps_steps=watch), limits.where)
        if watch:
            evaluation.observer = Recorder(self.steps)
        others = {name: np.asarray(value) for name, value in inputs.items()}
        with np.errstate(all="ignore"):  # values that are no finite numbers are an error below
            self.logits: Array = evaluation.run({"tokens": ids, **others})
        self._n_tokens = evaluation.n_past
        if not np.isfinite(self.logits).all():
            raise ParamcountError("logits are not finite", where=limits.where, expected="weights of a trained model")

    def append(self, tokens: Sequence[int]) -> Run:
        """The forward pass of further tokens. Keys, values and states of the tokens before them are not recomputed.

        Raises: ParamcountError as `paramcount.run` does; if this run has already been continued.
        """
        if sees_later_tokens(self._evaluation.out, cached=False):
            found = "its tokens see later ones, so that a further token changes all of them"
            raise ParamcountError(found, where=self._limits.where, expected="a run of the whole text")
        if self._n_tokens != self._evaluation.n_past:
            raise ParamcountError("this run was already continued", expected="the last run of the sequence")
        return Run(self._evaluation, tokens, self._inputs, self._limits, self._watch)

    def __repr__(self) -> str:
        return f"<Run of {self._n_tokens} tokens: logits {list(self.logits.shape)}>"


WITH_TOKENS = ("tokens", "words and entities")  # rows among which those of the tokens are


def sees_later_tokens(out: Data, *, cached: bool = True) -> bool:
    """Whether tokens attend to later ones of the same pass, as in an encoder, so that a text is not continued. Nor is
    it if no attention keeps anything of it, or if there are no tokens. `cached`: count attention that keeps its keys,
    too, with which tokens may follow those of a prompt.
    """
    steps = list_steps(out)
    if not any(isinstance(data.operation, Input) and data.operation.what == "tokens" for data, *_ in steps):
        return True
    attentions = [
        attention
        for attention in find_attentions(steps).values()
        if (attention.q.shape[0] in WITH_TOKENS or isinstance(attention.q.shape[0], int))
        and attention.k.shape[0] in (*WITH_TOKENS, "blocks")
    ]
    return (
        any(isinstance(data.operation, Fourier) for data, *_ in steps)
        or any(not attention.mask.is_causal and (cached or not attention.caches) for attention in attentions)
        or bool(attentions and not any(attention.caches for attention in attentions))
    )


class Limits:
    """What a model accepts as tokens."""

    def __init__(self, out: Data, sizes: Sizes, where: str) -> None:
        self.where = where
        self.vocab_size: int | None = getattr(sizes, "vocab_size", None)
        if isinstance(self.vocab_size, int):
            self.vocab_size += getattr(sizes, "n_additional", 0)
        self.n_positions = count_positions(out)

    def check_tokens(self, tokens: Sequence[int], n_past: int) -> Array:
        """Token ids as int64 [n].

        Raises: ParamcountError if there are none or too many, or for one that the model does not have.
        """
        ids = np.asarray(tokens)
        if ids.ndim != 1 or not ids.size or ids.dtype.kind not in "iu":
            problem = "is not a list of integers" if ids.size else "is empty"
            expected = "a list of token ids" if ids.size else "at least one token id"
            raise ParamcountError(problem, where="tokens", expected=expected)
        if self.n_positions is not None and n_past + len(ids) > self.n_positions:
            found = f"{n_past + len(ids):,} tokens exceed the {self.n_positions:,} positions of the position embedding"
            raise ParamcountError(found, where=self.where, expected=f"at most {self.n_positions:,}")
        if isinstance(self.vocab_size, int):
            for id in ids[(ids < 0) | (ids >= self.vocab_size)][:1]:
                raise ParamcountError(
                    f"unknown token id {id:,}", where="tokens", expected=f"0 to {self.vocab_size - 1:,}"
                )
        return ids.astype(np.int64)


def run_model(
    sizes: Sizes,
    weights: str | Path | Weights | Mapping[str, Any],
    tokens: Sequence[int],
    *,
    head: bool = True,
    where: str = "model",
    watch: bool = False,
    report: Callable[[int, int], object] | None = None,
    **inputs: Any,
) -> Run:
    """The forward pass of a model with these sizes and settings.

    `inputs`: further inputs by name: `source_tokens`, the ids that an encoder reads; `encoder_output`; of a multimodal
    model `pixels`, one normalised image [channels, height, width], for which the tokens hold as many placeholders as
    its encoder returns vectors. Without an image, the model reads the text alone, and so does a decoder
    such as BartForCausalLM without an encoder's output.
    """
    evaluation = prepare(sizes, weights, head=head, where=where, inputs=inputs)
    evaluation.report = report
    return Run(evaluation, tokens, inputs, Limits(evaluation.out, sizes, where), watch)


def prepare(
    sizes: Sizes,
    weights: str | Path | Weights | Mapping[str, Any],
    *,
    head: bool = True,
    where: str = "model",
    inputs: Collection[str] = (),
) -> Evaluation:
    """A forward pass that can start: all operations are described, all settings are known, all weights are there.

    `inputs`: names of what is given besides the tokens; without an image, its encoder is not part of the pass.
    """
    out, part = next(iter(list_flows(sizes, head)))
    check_inputs(out, inputs)
    out = omit_missing(out, {"tokens", *inputs})
    check_operations(out, where)
    if isinstance(weights, (str, Path, Mapping)):
        weights = open_weights(weights, list(list_tensors(sizes, head)))
    elif not hasattr(weights, "read_matrix"):
        expected = "the path of a checkpoint, or a mapping of names to arrays"
        raise ParamcountError(f"is of type {type(weights).__name__}", where="weights", expected=expected)
    if isinstance(weights, StoredWeights):
        for name, shape, index in list_reads(out, part):
            weights.check(name, shape, index)
    return Evaluation(out, weights, part)


def run_loaded(
    model: Model,
    weights: str | Path | Mapping[str, Any],
    tokens: Sequence[int],
    *,
    watch: bool = False,
    report: Callable[[int, int], object] | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> Run:
    """The forward pass of a model.

    `inputs`: as for `run_model`. `report`: called with (layers done, number of layers).
    """
    sizes, where = settle_sizes(model, weights), make_printable(model.id)
    return run_model(
        sizes, weights, tokens, head=model.reading.head, where=where, watch=watch, report=report, **(inputs or {})
    )


def settle_sizes(model: Model, weights: object) -> Sizes:
    """The sizes of a model with its settings; of a zoo entry without settings, with those of a config.json beside the
    weights.
    """
    if model.entry is not None and model.entry.settings is None:
        document = read_config_beside(weights)
        if document is not None:
            return with_document(model.sizes, document)
    return model.sizes


def read_config_beside(weights: object) -> Mapping[str, Any] | None:
    """The config.json in the directory of the weights; None if there is none, or if they are a mapping."""
    if not isinstance(weights, (str, Path)):
        return None
    path = expand_home(str(weights))
    config = (path if path.is_dir() else path.parent) / "config.json"
    if not config.is_file():
        return None
    try:
        return parse_json(read_text(config, "a config.json", LARGEST_CONFIG))
    except ParamcountError as error:
        raise error.add_location(make_printable(config)) from None


def check_operations(out: Data, where: str) -> None:
    """Raises: ParamcountError if an operation is not supported, or if one of its settings is unknown."""
    unknown: dict[str, None] = {}
    for data, *_ in list_steps(out):
        if not data.operation.runs:
            found = f"cannot run, because paramcount does not compute the operation {data.operation.label!r}"
            raise ParamcountError(found, where=where, expected="an architecture whose operations are all supported")
        masks = data.operation.mask.parts if isinstance(data.operation, Hide) else ()
        values = [getattr(owner, name) for owner in (data.operation, *masks) for name in owner.fields]
        unknown.update((value.name, None) for value in values if isinstance(value, Unknown))
    if unknown:
        verb = "s are" if len(unknown) > 1 else " is"
        settings = f"{join_words(unknown, 'and')} setting{verb}"
        found = f"cannot run, because the {settings} unknown"
        raise ParamcountError(found, where=where, expected="the config.json of the model, which states them")


def list_reads(out: Data, part: str) -> Iterator[tuple[str, tuple[int, ...], int | None]]:
    """(name, shape, index of an expert) of every weight that a pass reads; of stacked experts only the first."""
    seen: set[str] = set()
    for row in list_rows(out, part):
        name, shape = row.tied_to or row.name, tuple(int(n) for n in row.matrix)
        for indices in product(*(repeat.indices for repeat in row.repeats)):
            full = fill_indices(name, [(repeat.axis, index) for repeat, index in zip(row.repeats, indices)])
            if full not in seen and 0 not in shape:
                seen.add(full)
                yield full, shape, 0 if row.stacked else None
