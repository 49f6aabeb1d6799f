"""A trace is a reading of the declaration: nothing is lost, nothing doubled, and shapes meet, in every model and way of
sending it tokens.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache, lru_cache
from math import prod
from pathlib import Path
from typing import Any

import paramcount.zoo as zoo
from paramcount.api import load
from paramcount.counting.sum_weights import list_flows
from paramcount.errors import ParamcountError
from paramcount.flow import list_rows
from paramcount.tracing.run import has_encoder_input, trace_model
from paramcount.tracing.shapes import TraceOptions
from paramcount.tracing.trace import Shape, Step, Trace
from paramcount.zoo import count_model
from tests import cases
from tests.batches import in_batches
from tests.structures import keep_every, pick_structures

# Operations whose output is learned, depends on lengths alone, or has a fixed number of rows per image: without a batch
# axis.
SAME_FOR_ALL = ("relative positions", "aspect ratio", "query", "class token", "pool", "average patches")
CASES = cases.load_cases()
REMOTE = json.loads((Path(__file__).parent / "data" / "remote_models.json").read_text(encoding="utf-8"))
WAYS = [
    TraceOptions(5),
    TraceOptions(5, pad=7),
    TraceOptions(2, batch=3),
    TraceOptions(1, past=6),
    TraceOptions(3, past=600),
]


# A config of each supported architecture: the first that the reference builds, or the released one.
BUILT = {name: [case["config"] for case in of_type if "total" in case] for name, of_type in CASES.items()}
CONFIGS: dict[str, Any] = {f"{name}.json": configs[0] for name, configs in BUILT.items() if configs}
CONFIGS |= {f"{name}.json": released["config"] for name, released in REMOTE.items()}
MODELS = [*pick_structures(every=10), *keep_every(20, CONFIGS)]


@cache
def load_model(id: str) -> zoo.Model:
    return load(CONFIGS[id]) if id in CONFIGS else zoo.load_entry(id)


@lru_cache(maxsize=300)  # the traces of one batch of models
def trace_once(id: str, options: TraceOptions) -> Trace:
    return trace_model(load_model(id), options)


def list_traces(id: str) -> list[Trace]:
    """The traces of every input that the model can process."""
    found = []
    options = [*WAYS, TraceOptions(2, batch=3, source=4)] if has_encoder_input(load_model(id)) else WAYS
    for asked in options:
        try:
            found.append(trace_once(id, asked))
        except ParamcountError as error:
            if "position embedding" not in str(error) and "is not autoregressive" not in str(error):
                raise
    assert found
    return found


@in_batches("id", MODELS, size=20, grouped=True)
def test_the_inner_dimensions_of_every_product_are_equal(id: str) -> None:
    for found in list_traces(id):
        for step in found.steps:
            if step.product:
                left, right, out = step.product
                assert (left[-1], right[-1]) == (right[0], out[-1])
                assert left[:-1] == out[:-1]


def merge_heads(shape: Shape) -> tuple[list[str], int]:
    """A shape apart from how its numbers stand in heads."""
    return sorted(n for n in shape if isinstance(n, str)), prod(n for n in shape if isinstance(n, int))


def nesting_depth(step: Step) -> int:
    """How deep it stands in experts, streams, heads: bodies that take a part of what is given."""
    return sum(scope.axis != "layer" for scope in step.scopes)


@in_batches("id", MODELS, size=20, grouped=True)
def test_the_inputs_of_a_step_are_the_outputs_of_the_steps_that_it_reads(id: str) -> None:
    for found in list_traces(id):
        for i, step in enumerate(found.steps):
            read = [found.steps[before] for before in step.reads]
            assert all(before < i for before in step.reads)
            if not step.inputs:
                assert read == []
            in_body = any(nesting_depth(before) < nesting_depth(step) for before in read)
            if in_body or step.op == "append to block outputs":
                continue  # what earlier blocks left; the rows that chose an expert, one head of all
            given, taken = (
                [merge_heads(before.out) for before in read],
                [merge_heads(shape) for shape in step.inputs[step.op == "KV cache" :]],
            )
            assert [shape for shape in given if shape not in taken] == []
            assert [shape for shape in taken if shape not in given] == []


@in_batches("id", MODELS, size=20, grouped=True)
def test_steps_after_the_last_position_depend_on_it(id: str) -> None:
    for found in list_traces(id):
        behind: set[int] = set()
        of_others: set[int] = set()  # what is computed from other inputs alone: an image, the tokens of a codebook
        for i, step in enumerate(found.steps):
            if behind and of_others.issuperset(step.reads):
                of_others.add(i)
                continue
            if behind:
                assert behind & set(step.reads) != set()
            if step.op == "last position" or behind:
                behind.add(i)


@in_batches("id", MODELS, size=20, grouped=True)
def test_a_batch_has_the_same_steps_with_a_batch_axis(id: str) -> None:
    one, three = trace_once(id, TraceOptions(5)), trace_once(id, TraceOptions(5, batch=3))
    assert [(step.op, step.name, step.reads) for step in three.steps] == [
        (step.op, step.name, step.reads) for step in one.steps
    ]
    shared: list[bool] = []  # whether the output of a step is the same for all texts
    for step, alone in zip(three.steps, one.steps):
        shared.append(step.out == alone.out)
        in_expert = any(scope.axis == "expert" for scope in step.scopes)  # the tokens of all texts that chose it
        is_of_tokens = step.out[:1] == (5,)  # not a learned query among patches, and not a learned prompt
        if not shared[-1]:
            assert step.out == (3, *alone.out)
        elif not in_expert and is_of_tokens and step.op not in SAME_FOR_ALL:
            assert [shared[i] for i in step.reads] == [True] * max(1, len(step.reads))
        assert (step.product and step.product.right) == (alone.product and alone.product.right)
    assert (three.cache, three.attention_scores) == (one.cache, one.attention_scores)  # of one text


@in_batches("id", MODELS, size=20, grouped=True)
def test_decoding_uses_the_weights_that_a_prompt_uses(id: str) -> None:
    """But those of what went in before: another text, a picture."""
    try:
        after = {held.name for step in trace_once(id, TraceOptions(1, past=6)).steps for held in step.weights}
    except ParamcountError as error:
        assert "is not autoregressive" in str(error)  # noqa: PT017
        return
    every = {held.name: step for step in trace_once(id, TraceOptions(5)).steps for held in step.weights}
    assert after <= set(every)
    beside = {"encoder", "vision", "audio", "projector"}
    of_images_and_memory = {"keys", "values", "norm", "keys, values", "insert", "memory token embedding"}
    crossed = [
        step.name
        for name, step in every.items()
        if name not in after and step.part not in beside and step.text not in of_images_and_memory
    ]
    assert crossed == []


@in_batches("id", MODELS, size=20, grouped=True)
def test_the_cache_after_a_text_is_the_cache_that_decoding_reads(id: str) -> None:
    longest = 100  # more than any text here
    source = longest if has_encoder_input(load_model(id)) else None
    try:
        after = trace_once(id, TraceOptions(1, past=6, source=source))
    except ParamcountError as error:
        assert "is not autoregressive" in str(error)  # noqa: PT017
        return
    text, longer = (
        trace_once(id, TraceOptions(6, source=source)),
        trace_once(id, TraceOptions(7, source=source)),
    )
    assert after.cache == longer.cache
    assert [kept.grows for kept in text.cache] == [kept.grows for kept in longer.cache]
    found, expected = Counter[Shape](), Counter[Shape]()
    for step in after.steps:
        if step.op == "KV cache" and step.inputs:
            found[step.inputs[0]] += prod(scope.copies for scope in step.layers)
    for kept in text.cache:
        for shape in kept.shapes:
            if (
                kept.what not in ("state", "last inputs")
                and isinstance(shape[0], int)
                and kept.kind != "cross-attention"
            ):
                expected[shape] += kept.layers
    assert found == expected


@in_batches("id", MODELS, size=20, grouped=True)
def test_every_declared_weight_is_in_one_step(id: str) -> None:
    model = load_model(id)
    out, part = next(iter(list_flows(model.sizes, model.reading.head)))
    declared = Counter(record.name for record in list_rows(out, part))
    found = trace_once(id, TraceOptions(5))
    assert Counter(held.name for step in found.steps for held in step.weights) == declared


@in_batches("id", MODELS, size=20, grouped=True)
def test_the_weights_of_the_steps_sum_to_the_total(id: str) -> None:
    total = 0
    for step in trace_once(id, TraceOptions(5)).steps:
        for held in step.weights:
            if held.role == "parameter" and held.tied_to is None:
                is_shared = "{expert}" not in held.name and prod(held.stored) == prod(held.shape)  # by all experts
                copies = prod(scope.copies for scope in step.scopes if not (is_shared and scope.axis == "expert"))
                total += copies * prod(n for n in held.shape if isinstance(n, int))
    assert total == count_model(load_model(id)).total


@in_batches("id", MODELS, size=20, grouped=True)
def test_the_multiplied_shape_of_an_expert_is_its_share_of_the_stored_tensor(id: str) -> None:
    for step in trace_once(id, TraceOptions(5)).steps:
        for held in step.weights:
            stacked = prod(map(int, held.stored)) != prod(map(int, held.shape))
            experts = [scope.copies for scope in step.scopes if scope.axis == "expert"]
            assert prod(map(int, held.stored)) == prod(map(int, held.shape)) * (experts[0] if stacked else 1)
            assert len(held.stored) - len(held.shape) in ((0, 1) if stacked or experts == [1] else (0,))
