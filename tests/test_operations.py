"""The closed vocabulary of operations: every class has its facets, and computes what its words say.

The expected values are worked out by hand from the formulas in the docstrings; the reference's logits check the
operations together (tests/oracle/test_logits.py).
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from math import e, exp, log, sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import paramcount
import paramcount.flow
import paramcount.parts
from paramcount import flow as ops
from paramcount.errors import ParamcountError
from paramcount.flow import Axes, Data, Rope, Weight, operations
from paramcount.flow.graph import ADD, MULTIPLY
from paramcount.flow.masks import (
    Causal,
    Chosen,
    Chunk,
    CompressedBlocks,
    GlobalTokens,
    Groups,
    Largest,
    Mask,
    Pairs,
    Window,
)  # fmt: skip
from paramcount.flow.operation import Array, Form, Operation, Parameters, Unknown
from tests.steps import Leaf, attend, run_steps

# The evaluation itself computes them.
CONTAINERS = {"Input", "Tuple", "SecondValue", "Block", "ForEach", "Layers", "HiddenStates"}


def list_classes(base: type[Operation] = Operation) -> Iterator[type[Operation]]:
    for info in pkgutil.walk_packages(operations.__path__, f"{operations.__name__}."):
        importlib.import_module(info.name)
    for cls in base.__subclasses__():
        yield cls
        yield from list_classes(cls)


def is_base(cls: type[Operation]) -> bool:
    return bool(cls.__subclasses__()) and (cls.compute is Operation.compute or not cls.name)


CLASSES = sorted({cls for cls in list_classes() if not is_base(cls)} - {ops.Undescribed}, key=lambda cls: cls.__name__)


def make_operation(cls: type[Operation], *, unknown: bool) -> Operation:
    """An operation with some value for each parameter. `unknown`: those that may be unknown are."""
    values: dict[str, Any] = {}
    for name in cls.fields:
        annotation = str(next(c.__annotations__[name] for c in cls.__mro__ if name in c.__annotations__))
        if "Unknown" in annotation and unknown:
            values[name] = Unknown(name)
        elif not hasattr(cls, name):
            values[name] = "rms" if name == "kind" else make_value(annotation)
    return cls(**values)


def make_value(annotation: str) -> Any:
    if choices := re.findall(r"[\"']([^\"']+)[\"']", annotation):
        return choices[0]
    if annotation.startswith("tuple"):
        return (2, 2)
    if annotation.startswith("Rope"):
        return Rope(10_000.0)
    if annotation.startswith("Mask"):
        return Causal() & Window(2)
    if annotation == "Operation":
        return ops.RowConvolution(2)
    return 2 if re.match("Size|int", annotation) else 0.5 if annotation.startswith("float") else "silu"


def list_parameters() -> Iterator[tuple[str, int]]:
    """(name, number of parameters) of every operation, mask, and function or method that builds a part of a flow."""
    for package in (paramcount.flow, paramcount.parts):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(info.name)
            own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
            classes = [value for value in own if isinstance(value, type)]
            methods = [value for cls in classes for name, value in vars(cls).items() if name[0] != "_"]
            yield from ((cls.__name__, len(cls.fields)) for cls in classes if issubclass(cls, Parameters))
            yield from (
                (value.__qualname__, len(inspect.signature(value).parameters))
                for value in (*own, *methods)
                if inspect.isfunction(value)
            )


def test_nothing_in_a_declaration_takes_more_than_eight_parameters() -> None:
    found = dict(list_parameters())
    assert (found["attend"], found["Decoder.self_attention"], found["Chunk"]) == (8, 8, 4)
    assert {name: n for name, n in found.items() if n > 8} == {}


def test_all_operations_are_in_flow() -> None:
    for info in pkgutil.walk_packages(paramcount.__path__, "paramcount."):
        if ".architectures." in info.name or ".parts." in info.name:
            importlib.import_module(info.name)
    assert {cls.__module__.rpartition(".")[0] for cls in CLASSES} <= {"paramcount.flow", "paramcount.flow.operations"}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_operation_has_all_facets(cls: type[Operation]) -> None:
    assert cls.__doc__
    assert (cls.compute is not Operation.compute) == (
        cls.runs and cls.__name__ not in CONTAINERS and not issubclass(cls, ops.Experts)
    )
    for unknown in (False, True):
        operation = make_operation(cls, unknown=unknown)
        assert operation.label
        assert "nknown" not in operation.label + operation.describe()
        assert isinstance(operation.form, Form)
        assert all(isinstance(flag, bool) for flag in (operation.named_by_weights, operation.reads_only_lengths))
        assert "not described" not in operation.describe()


def test_a_step_without_a_description_has_only_its_label() -> None:
    step = ops.Undescribed("a step")
    assert (step.label, step.describe(), step.form, step.named_by_weights) == (
        "a step",
        "not described",
        Form.PLAIN,
        False,
    )
    assert ops.Activation("unheard of").describe() == "not described"


def test_no_reader_compares_the_names_of_operations() -> None:
    """Readers ask for the class or its facets: a label is for people alone."""
    root = Path(paramcount.__file__).parent
    compared = re.compile(r"(\.op|\.label|\.text) (==|!=|in|not in) [(\"']|[\"'] (in|not in) (ops|labels)\b")
    folders = ("tracing", "drawing", "explaining", "execution", "zoo", "costs", "counting")
    files = [path for folder in folders for path in (root / folder).rglob("*.py")]
    assert [str(path) for path in files if compared.search(path.read_text(encoding="utf-8"))] == []


def test_only_steps_without_a_description_cannot_run() -> None:
    assert [cls for cls in CLASSES if not cls.runs] == []
    assert not ops.Undescribed("a step").runs


# ---- values


def compute(operation: Operation, *inputs: Any, weights: tuple[Any, ...] = (), past: int = 0, **state: Array) -> Array:
    arrays = [np.asarray(x, np.int64 if np.asarray(x).dtype.kind == "i" else np.float32) for x in inputs]
    n = len(arrays[0]) if arrays else 1
    run: Any = SimpleNamespace(positions=np.arange(past, past + n), layer=0, state=state)
    return operation.compute(run, arrays, [np.asarray(w, np.float32) for w in weights], arrays[0].shape)


LOGITS = Data("logits", (), ("tokens", 3))


def compute_steps(out: Data, logits: Any, **weights: Any) -> Array:
    """The value of steps that follow LOGITS."""
    if out is LOGITS:
        return np.asarray(logits, np.float32)
    inputs = [compute_steps(data, logits, **weights) for data in out.inputs]
    return compute(out.operation, *inputs, weights=tuple(weights[weight.name] for weight in out.weights))


def test_element_wise_operations() -> None:
    assert compute(ADD, [[1.0, 2.0]], [[3.0, 5.0]]).tolist() == [[4, 7]]
    assert compute(MULTIPLY, [[1.0, 2.0]], [[3.0, 5.0]]).tolist() == [[3, 10]]
    assert compute(ops.Activation("relu"), [[-1.0, 2.0]]).tolist() == [[0, 2]]
    assert compute(ops.Activation("silu"), [[1.0]])[0, 0] == pytest.approx(1 / (1 + 1 / e))
    assert compute(ops.Activation("gelu"), [[1.0]])[0, 0] == pytest.approx(0.8413447)  # Φ(1)


def test_norms_divide_by_the_root_mean_square_or_the_deviation() -> None:
    x, weight = [[3.0, 4.0]], [2.0, 1.0]
    root = sqrt((9 + 16) / 2 + 0.5)
    assert compute(ops.Norm("rms", 0.5), x, weights=(weight,))[0] == pytest.approx([6 / root, 4 / root])
    found = compute(ops.NormOfScaled(0.5), x, weights=(weight,))[0]
    root = sqrt((9 * 9 + 8 * 8) / 2 + 0.5)
    assert found == pytest.approx([9 / root, 8 / root])
    deviation = sqrt(0.25 + 0.5)
    found = compute(ops.Norm("layer", 0.5), x, weights=(weight, [1.0, 1.0]))[0]
    assert found == pytest.approx([1 - 2 * 0.5 / deviation, 1 + 0.5 / deviation])


def test_a_linear_layer_multiplies_by_its_matrix_in_the_stored_orientation() -> None:
    matrix = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]  # [out, in]
    assert linear(False, [[1.0, 10.0]], matrix, [0.0, 0.0, 1.0]) == [[21, 43, 66]]
    assert linear(True, [[1.0, 10.0, 100.0]], matrix) == [[531, 642]]


def linear(transposed: bool, x: Any, *weights: Any) -> Any:
    arrays = [np.asarray(w, np.float32) for w in weights]
    shape = (1, arrays[0].shape[1 if transposed else 0])
    return ops.Linear(transposed).compute(None, [np.asarray(x, np.float32)], arrays, shape).tolist()  # type: ignore[arg-type]


def test_a_lookup_reads_rows_by_id_or_by_position() -> None:
    table = [[0.0], [10.0], [20.0], [30.0]]
    assert compute(ops.Lookup(), [2, 1], weights=(table,)).tolist() == [[20], [10]]
    assert compute(ops.PositionLookup(1), [2, 1], weights=(table,), past=1).tolist() == [[20], [30]]
    with pytest.raises(ParamcountError, match=r"unknown token id 4 \(expected 0 to 3\)"):
        compute(ops.Lookup(), [4], weights=(table,))


@pytest.mark.parametrize(("pairing", "expected"), [("halves", [0, 2, 1, 2]), ("interleaved", [0, 1, 2, 2])])
def test_rotary_positions_turn_pairs_by_an_angle_per_position(pairing: Any, expected: list[int]) -> None:
    """With base 1, every pair turns by one radian per position: (1, 0) to (cos 1, sin 1), then (cos 2, sin 2)."""
    x = [1.0, 1, 0, 0] if pairing == "halves" else [1.0, 0, 1, 0]
    found = compute(ops.Rotary(Rope(1.0), pairing), [[x], [x]], past=1)
    for i, angle in enumerate((1, 2)):
        cos, sin = np.cos(angle), np.sin(angle)
        turned = [cos, cos, sin, sin] if pairing == "halves" else [cos, sin, cos, sin]
        assert found[i, 0] == pytest.approx(turned, abs=1e-6)


def test_a_head_of_one_value_is_both_halves_of_its_pair() -> None:
    # apply_rotary_pos_emb of the reference: x·cos − x·sin, twice, so that q · k counts twice; position 1 turns by 1
    q, k = compute(ops.Rotary(Rope(10_000.0)), [[3.0], [2.0]], past=1)
    turned = [np.cos(i) - np.sin(i) for i in (1, 2)]
    assert q[0] * k[0] == pytest.approx(2 * 3 * 2 * turned[0] * turned[1], rel=1e-6)


def test_angles_may_grow_with_the_square_of_the_position() -> None:
    found = compute(ops.RotaryBySquare(Rope(1.0), "interleaved"), [[1.0, 0], [1.0, 0], [1.0, 0]], past=1)
    assert found[:, 0] == pytest.approx(np.cos([1, 4, 9]), abs=1e-6)


def test_rows_after_the_first_ones_are_those_that_the_other_input_has_none_for() -> None:
    x, other = [[1.0], [2.0], [3.0]], [[0.0], [0.0]]
    assert compute(ops.EarlierTokens(), x, other).tolist() == [[1], [2]]
    assert compute(ops.OtherTokens(), x, other).tolist() == [[3]]


def test_learned_rows_may_be_stored_with_a_batch_axis() -> None:
    table: Any = np.array([[[1.0, 2.0], [3.0, 4.0]]], np.float32)
    assert ops.LearnedRows(2).compute(None, [], [table], (2, 2)).tolist() == [[1, 2], [3, 4]]  # type: ignore[arg-type]


def attend_equally(mask: Mask | None = None) -> Array:
    """Attention of three tokens with equal scores to values 1, 2 and 4."""
    q = k = np.zeros((3, 1, 2))
    return attend(q, k, np.array([[[1.0]], [[2.0]], [[4.0]]]), mask=mask).ravel()


def test_attention_with_equal_scores_is_the_mean_of_the_visible_values() -> None:
    assert attend_equally(Causal()) == pytest.approx([1, 3 / 2, 7 / 3])
    assert attend_equally(Causal() & Window(2)) == pytest.approx([1, 3 / 2, 3])
    assert attend_equally() == pytest.approx([7 / 3] * 3)
    assert attend_equally(Causal() & Chunk(2)) == pytest.approx([1, 3 / 2, 4])
    assert attend_equally(Window(1, 1)) == pytest.approx([3 / 2, 3, 4])


def test_attention_scales_and_caps_its_scores() -> None:
    q = np.ones((1, 1, 4))
    k, v = Leaf([[[0.0] * 4], [[0.0] * 4], [[1.0] * 4]]), Leaf([[[1.0]], [[1.0]], [[0.0]]])
    for s, score in (
        (ops.scores(Leaf(q), k), 2.0),
        (ops.scores(Leaf(q), k, 0.25), 1.0),
        (ops.soft_cap(ops.scores(Leaf(q), k), 1.0), np.tanh(2.0)),
    ):
        last = run_steps(ops.weighted_sum(ops.softmax(s), v), 3)
        assert last.item() == pytest.approx(2 / (2 + np.exp(score)), rel=1e-5)
    sinks = Weight("sinks", "other", (1,))
    assert (
        run_steps(ops.weighted_sum(ops.softmax(ops.scores(Leaf(0 * q), k), sinks=sinks), v), 3, [0.0]).item() == 2 / 4
    )


def test_neighbouring_heads_share_keys_and_masks() -> None:
    """Of four heads, two share a key, and what was chosen for a pair of heads."""
    q, k = np.zeros((1, 4, 1)), np.zeros((2, 2, 1))
    v = np.array([[[1.0], [10.0]], [[3.0], [30.0]]])
    chosen = Leaf([[[0, -1], [0, 1]]], int)
    assert attend(q, k, v, mask=Chosen(chosen)).ravel().tolist() == [1, 1, 20, 20]


def test_groups_hide_one_another_in_most_layers() -> None:
    pairs, of_queries = Pairs(2, 3, 3, layer=1), np.array([0, 1])
    of_keys = np.array([1, 0, 1])
    mask, data = Groups(Leaf(of_queries), Leaf(of_keys), except_in=(2,)).take_data()
    assert len(data) == 2
    shown: Any = mask.show(pairs, iter([of_queries, of_keys]))
    assert shown.tolist() == [[False, True, False], [True, False, True]]
    assert mask.show(pairs._replace(layer=2), iter([of_queries, of_keys])) is True


def test_a_mask_says_what_a_token_attends_to() -> None:
    data = Leaf([0])
    for mask, text in (
        (Causal() & Window(4096), "itself and at most 4,095 earlier tokens"),
        (Window(513, 512), "tokens up to 512 positions away"),
        (Window(13, 2), "at most 12 earlier and 2 later tokens"),
        (Causal() & Chunk(8192), "itself and earlier tokens in its own chunk of 8,192 tokens"),
        (Causal() | GlobalTokens(data), "itself and earlier tokens, and to global tokens"),
        (
            Causal() & Window(5) & Largest(data, 2),
            "itself and at most 4 earlier tokens, of these to the 2 with the largest biases",
        ),
    ):
        assert ops.hide(ops.scores(data, data), mask).operation.describe() == f"each token attends to {text}"


def test_a_cache_forgets_what_its_mask_hides() -> None:
    run: Any = SimpleNamespace(state={})
    operation = ops.Cache(Causal() & Window(3))
    rows = [operation.compute(run, [np.array([float(i)])], [], (1,)).tolist() for i in range(4)]
    assert rows == [[0], [0, 1], [0, 1, 2], [1, 2, 3]]
    assert (Chunk(4, before=1).trim, Window(3).trim, Causal().trim) == (8, 3, None)


def test_other_queries_meet_later_keys() -> None:
    q, other, k = Leaf([[[1.0]], [[2.0]]]), Leaf([[[10.0]], [[20.0]]]), Leaf([[[1.0]], [[1.0]], [[3.0]]])
    found = run_steps(ops.scores_of_two(q, other, k, Leaf([0.0])), 3)
    assert found.tolist() == [[[1, 10, 30], [2, 20, 60]]]


def test_a_bias_by_place_is_that_of_the_distance_of_two_patches() -> None:
    bias, places = Leaf([[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]]), Leaf([[0, 0], [0, 1]], int)
    assert run_steps(ops.bias_by_place(bias, places, "columns"), 2)[..., 0].tolist() == [[2, 1], [6, 5]]
    assert run_steps(ops.bias_by_place(bias, places, "rows"), 2)[..., 0].tolist() == [[2, 2], [5, 5]]


def test_alibi_grows_with_the_distance() -> None:
    run: Any = SimpleNamespace(positions=np.array([2]), state={})
    found = ops.Alibi().compute(run, [], [], (1, 3, 2))
    assert found[0].T.ravel() == pytest.approx([-2 / 16, -1 / 16, 0, -2 / 256, -1 / 256, 0])


def test_splits_are_contiguous_or_per_group() -> None:
    x = [[1.0, 2, 3, 4, 5, 6]]
    run: Any = SimpleNamespace(positions=np.arange(1), state={})
    for groups, expected in ((1, [[5, 6]]), (2, [[3, 6]])):
        split = ops.Split((2, 2, 2), 2, groups)
        assert split.compute(run, [np.asarray(x, np.float32)], [], (1, 2)).tolist() == expected
    assert compute(ops.Join(), [[1.0]], [[2.0]]).tolist() == [[1, 2]]


def test_a_router_weighs_the_chosen_experts() -> None:
    logits = np.log([[1.0, 2.0, 5.0]])
    shares = np.array([0, 2, 5]) / 8
    assert compute_steps(ops.route(LOGITS, 2, "softmax"), logits)[0] == pytest.approx(shares)
    assert compute_steps(ops.route(LOGITS, 2, "softmax", normalise=True), logits)[0] == pytest.approx(shares * 8 / 7)
    assert compute_steps(ops.softmax_of_top(LOGITS, 2), logits)[0] == pytest.approx(shares * 8 / 7)
    odds = np.array([0, 2 / 3, 5 / 6])
    assert compute_steps(ops.route(LOGITS, 2, "sigmoid", factor=2.0), logits)[0] == pytest.approx(2 * odds)
    biased = ops.route(LOGITS, 1, "sigmoid", bias=Weight("bias", "router", (3,)))
    assert compute_steps(biased, logits, bias=[9.0, 0, 0])[0] == pytest.approx([1 / 2, 0, 0])


def test_experts_of_other_groups_are_not_chosen() -> None:
    scores = [[5.0, 1.0, 4.0, 3.0]]
    best = ops.limit_to_groups(LOGITS, 2, 1)
    assert compute_steps(ops.top_k(LOGITS, 2, best), scores).tolist() == [[5, 1, 0, 0]]
    best = ops.limit_to_groups(LOGITS, 2, 1, "top 2")
    assert compute_steps(ops.top_k(LOGITS, 2, best), scores).tolist() == [[0, 0, 4, 3]]
    assert compute_steps(ops.limit_to_groups(LOGITS, 2, 1, excluded=2.0), scores).tolist() == [[5, 1, 2, 2]]
    assert ops.limit_to_groups(LOGITS, 1, 1) is LOGITS


def test_a_value_that_two_axes_would_share_does_not_rotate() -> None:
    """VisionRotaryEmbedding of the reference has head_dim // 2 = 0 frequencies, and a product of no values is 0."""
    axes = Axes((0, 0), "in turns")
    assert compute(ops.RotaryAt(Rope(10_000.0), axes=axes), [[3.0], [2.0]], [[0, 0], [0, 1]]).ravel().tolist() == [0, 0]


def test_a_convolution_sees_the_last_tokens_of_the_text_so_far() -> None:
    weights = ([[[1.0, 10.0]]], [0.5])
    operation = ops.CausalConvolution(2, channels=1)
    state: dict[str, Array] = {}
    run: Any = SimpleNamespace(positions=np.arange(2), state=state)
    arrays = [np.asarray(w, np.float32) for w in weights]
    first = operation.compute(run, [np.array([[1.0], [2.0]], np.float32)], arrays, (2, 1))
    assert first.ravel().tolist() == [10.5, 21.5]
    assert operation.compute(run, [np.array([[3.0]], np.float32)], arrays, (1, 1)).ravel().tolist() == [32.5]


def test_a_convolution_of_frames_sees_both_neighbours() -> None:
    kernel = [[[1.0, 10.0, 100.0]]]
    frames = [[1.0], [2.0], [3.0], [4.0]]
    assert compute(ops.RowConvolution(3), frames, weights=(kernel, [0.5])).ravel().tolist() == [
        210.5,
        321.5,
        432.5,
        43.5,
    ]
    assert compute(ops.RowConvolution(3, 2), frames, weights=(kernel, [0.5])).ravel().tolist() == [210.5, 432.5]


def test_an_even_convolution_over_frames_reaches_further_back_than_ahead() -> None:
    frames = [[1.0], [2.0], [3.0]]
    assert compute(ops.RowConvolution(2), frames, weights=([[[10.0, 100.0]]],)).ravel().tolist() == [100, 210, 320]


def test_an_even_convolution_may_reach_further_ahead_than_back() -> None:
    """FunAsrNanoFSMN pads (width − 1) // 2 frames on the left and the others on the right."""
    frames, kernel = [[1.0], [2.0], [3.0]], [[[10.0, 100.0]]]
    found = compute(ops.RowConvolution(2, padding=ops.FEWER_BEFORE), frames, weights=(kernel,))
    assert found.ravel().tolist() == [210, 320, 30]


def test_a_convolution_of_the_past_sees_no_later_frame() -> None:
    frames, kernel = [[1.0], [2.0], [3.0], [4.0]], [[[1.0, 10.0, 100.0]]]
    assert compute(ops.RowConvolution(3, padding=ops.BEFORE), frames, weights=(kernel,)).ravel().tolist() == [
        100,
        210,
        321,
        432,
    ]
    assert compute(ops.RowConvolution(3, 2, ops.BEFORE), frames, weights=(kernel,)).ravel().tolist() == [210, 432]


def test_batch_norm_takes_the_mean_and_the_variance_that_are_stored() -> None:
    weights = ([2.0, 3.0], [0.5, 0.25], [1.0, 5.0], [3.0, 15.0], 7.0)
    found = compute(ops.BatchNorm(1.0), [[3.0, 13.0], [-1.0, 5.0]], weights=weights)
    assert found.tolist() == [[2.5, 6.25], [-1.5, 0.25]]


def test_softmax_is_of_each_vector() -> None:
    found = compute(ops.RowSoftmax(), np.log([[1.0, 3.0], [4.0, 1.0]]))
    assert found.tolist() == [pytest.approx([0.25, 0.75]), pytest.approx([0.8, 0.2])]


def test_near_distances_have_buckets_of_their_own_and_far_ones_share_them() -> None:
    rows = compute(
        ops.CausalDistanceBuckets(8, 16), [[0.0]], past=17
    )  # the log of the distance: 4, 8 and 16 in 4 steps
    assert rows[0, ::-1].tolist() == [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7]
    both = compute(ops.DistanceBuckets(8, 4), [[0.0]] * 4)
    assert both.tolist() == [[0, 5, 6, 7], [1, 0, 5, 6], [2, 1, 0, 5], [3, 2, 1, 0]]


def test_blocks_of_tokens_are_summed_and_the_last_takes_what_is_left() -> None:
    sums = compute(ops.BlockSums(2), [[1.0], [2.0], [3.0], [4.0], [10.0]])
    assert sums.tolist() == [[3], [17]]
    assert compute(ops.BlockSums(4), [[1.0], [2.0]]).shape == (0, 1)
    assert compute(ops.BlockDistanceBuckets(8, 4, block=2), [[0.0]] * 5).tolist() == [
        [0, 5],
        [0, 5],
        [1, 0],
        [1, 0],
        [1, 0],
    ]


def test_all_tokens_see_keys_in_front_of_the_text() -> None:
    weights = np.log([[[1.0], [2.0], [5.0]]])  # [n, m, heads]: a key in front, then two tokens
    bias = np.repeat(weights, 2, axis=0)
    zeros, values = np.zeros((3, 1, 1)), np.array([[[8.0]], [[80.0]], [[800.0]]])
    found = attend(zeros[:2], zeros, values, bias, mask=Causal(), end=2).ravel()
    assert found == pytest.approx([(8 + 160) / 3, (8 + 160 + 4000) / 8])
    nearby = attend(zeros[:2], zeros, values, bias, mask=Window(1, 0), end=2).ravel()
    assert nearby == pytest.approx([(8 + 160) / 3, (8 + 4000) / 6])


def test_a_full_expert_takes_no_more_tokens() -> None:
    found = compute(ops.limit_capacity(LOGITS, 1).operation, [[0.75, 0], [0.75, 0], [0, 0.75]])
    assert found.tolist() == [[0.75, 0], [0, 0], [0, 0.75]]


def test_every_head_has_a_matrix_of_its_own_in_the_stored_orientation() -> None:
    x, matrices = [[[1.0, 2.0], [3.0, 4.0]]], [[[1.0, 1.0]], [[1.0, -1.0]]]
    assert compute(ops.HeadLinear(), x, weights=(matrices, [[0.5], [0.0]])).ravel().tolist() == [3.5, -1.0]
    turned = compute(ops.HeadLinear(transposed=True), x, weights=([[[1.0], [1.0]], [[1.0], [-1.0]]],))
    assert turned.ravel().tolist() == [3, -1]


def test_a_selective_scan_decays_and_takes_in() -> None:
    u, step, ones = [[2.0], [2.0]], [[log(e - 1)]] * 2, [[1.0], [1.0]]  # softplus(step) = 1, exp(dt · A) = ½
    found = compute(ops.SelectiveScan(1, 1), u, step, ones, ones, weights=([[log(log(2))]], [10.0]))
    assert found.ravel() == pytest.approx([22, 23])
    by_head = compute(
        ops.SelectiveScan((1, 1), 1), [[x] for x in u], [[x] for x in step], *[[[[1.0]], [[3.0]]]] * 2,
        weights=([[[log(log(2))]]], [[0.0]]),
    )  # fmt: skip
    assert by_head.ravel() == pytest.approx([2, 3 * (1 + 6)])


def test_the_step_of_a_state_space_is_limited_after_its_bias() -> None:
    inputs = [[2.0], [2.0]], [[50.0], [50.0]], [[1.0], [1.0]], [[1.0], [1.0]]
    weights = ([0.0], [log(log(2))], [0.0])
    assert compute(ops.StateSpaceDual(1, 1, 1, (0.0, 1.0)), *inputs, weights=weights).ravel() == pytest.approx([2, 3])


def test_the_delta_rule_moves_what_a_key_holds_towards_its_value() -> None:
    q = k = [[[1.0]], [[1.0]]]
    v, beta, weights = [[[3.0]], [[5.0]]], [[1.0], [0.5]], ([0.0], [0.0])
    kept = compute(ops.DeltaRule(1, 1, 1), q, k, v, [[-90.0]] * 2, beta, weights=weights)
    assert kept.ravel() == pytest.approx([3, 4])
    halved = compute(ops.DeltaRule(1, 1, 1, -2 * log(2)), q, k, v, [[0.0]] * 2, beta, weights=weights)
    assert halved.ravel() == pytest.approx([3, 1.5 + 0.5 * 3.5])


def test_linear_attention_sums_values_that_fade() -> None:
    found = compute(
        ops.LinearAttention(1, 1, 1), *[[[[1.0]], [[1.0]]]] * 2, [[[2.0]], [[4.0]]], weights=([[[log(2)]]],)
    )
    assert found.ravel() == pytest.approx([2, 5])
    with pytest.raises(ParamcountError, match="decays"):
        compute(ops.LinearAttention(1, 1, 1), *[[[[1.0]]]] * 3)


def test_the_first_token_enters_a_gated_recurrence_whole() -> None:
    u, half, whole = [[2.0], [2.0]], [[0.5], [0.5]], [[1.0], [1.0]]
    rate = ([log(2 ** (log(2) / 8 / log(2)) - 1)],)  # softplus = ln 2 / 8: a = ½ if the recurrence gate is open
    found = compute(ops.GatedUnit(1), u, half, whole, weights=rate)
    assert found.ravel() == pytest.approx([1, 0.5 + sqrt(0.75)])
    kept = compute(ops.GatedUnit(1), u, half, [[0.0], [0.0]], weights=rate)
    assert kept.ravel().tolist() == [1, 1]


def test_a_setting_that_is_unknown_cannot_be_computed() -> None:
    with pytest.raises(ParamcountError, match="the setting norm_eps is unknown"):
        compute(ops.Norm("rms", Unknown("norm_eps")), [[1.0]], weights=([1.0],))


def test_data_holds_its_operation() -> None:
    x = Data("input", (), ("tokens", 2))
    assert (x + x).operation is ADD
    assert (x * x).operation.label == "multiply"


def test_queries_grow_with_the_position_in_steps_or_with_its_logarithm() -> None:
    x = [[1.0]] * 6
    steps = [1, 1, 1, 1, 1 + 0.5 * log(2), 1 + 0.5 * log(2)]
    assert compute(ops.ScaleInSteps(4, 0.5), x)[:, 0] == pytest.approx(steps)
    assert compute(ops.ScaleByLogarithm(4), x)[:, 0] == pytest.approx([1, 1, 1, 1, log(5) / log(4), log(6) / log(4)])
    ratios = [1, 1, *(1 + 0.5 * log((i + 1) / 2) for i in range(2, 6))]
    assert compute(ops.ScaleByLogOfRatio(2, 0.5, 1), x)[:, 0] == pytest.approx(ratios)
    power = [(1 + (i + 1) / 8) ** 0.5 for i in range(6)]
    assert compute(ops.ScaleByPower(8, 0.5, 1), x)[:, 0] == pytest.approx(power)


def test_residual_and_update_are_scaled_by_the_number_of_additions() -> None:
    run: Any = SimpleNamespace(layer=2)  # the fifth and the sixth of layer 2 follow four, and the embedding counts
    for addition, i in ((1, 6), (2, 7)):
        x = np.ones((1, 1), np.float32)
        residual = ops.ScaleByDepth("residual", addition).compute(run, [x], [], (1, 1))
        update = ops.ScaleByDepth("update", addition).compute(run, [x], [], (1, 1))
        assert [residual.item(), update.item()] == pytest.approx([sqrt((i - 1) / i), sqrt(1 / i)])


def test_a_gate_keeps_as_much_of_the_residual_as_leaves_its_magnitude() -> None:
    """Of values √(1 − g²) and g the squares sum to 1, but √(1 − g²) is at least √least."""
    sum_ = ops.add_by_gate(
        Data(ops.Input(), (), (1, 2)), Data(ops.Input(), (), (1, 2)), "gate", "gate", 0.5, least=0.01
    )
    kept, added = (compute(data.operation, [[2.0, 2.0]], weights=([0.0, 50.0],))[0] for data in sum_.inputs)
    assert kept == pytest.approx([2 * sqrt(0.75), 2 * 0.1])  # g = 0.5 and g = 1
    assert added == pytest.approx([1, 2])
    (kept,) = compute(sum_.inputs[0].operation, [[1.0]], weights=([1.0],))  # g = sigmoid(1 / 0.5)
    assert kept == pytest.approx([sqrt(1 - 1 / (1 + e**-2) ** 2)])


def test_lightning_attention_forgets_less_in_later_layers() -> None:
    x = np.ones((2, 1, 1), np.float32)
    run: Any = SimpleNamespace(layer=1, state={})  # half of the slope 2⁻⁸
    found = ops.LinearAttention(1, 1, 1, n_layers=3).compute(run, [x, x, x], [], (2, 1, 1))
    assert found.ravel() == pytest.approx([1, 1 + exp(-(2**-8) * (0.5 + 1e-5))], rel=1e-7)


def test_the_base_of_qwen_grows_in_steps_beyond_the_length_of_training() -> None:
    rope = Rope(10_000.0, ops.StepScaling(8))
    for n_tokens, alpha in ((5, 1), (8, 1), (9, 3), (16, 3), (17, 7)):
        assert rope.frequencies(4, n_tokens)[1] == pytest.approx((10_000 * alpha**2) ** -0.5)


def test_half_of_the_heads_is_subtracted_from_the_other_half() -> None:
    x = np.array([[[8.0, 4.0], [2.0, 0.0]]], np.float32)  # λ = e² − e⁰ + 0.2 in layer 0
    learned = ([1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0])
    first = 8 - 2 * (exp(2) - 1 + 0.2)
    root = sqrt((first**2 + 16) / 2 + 0.5)
    run: Any = SimpleNamespace(layer=0)
    found = ops.Differential(0.5).compute(run, [x], [np.array(w, np.float32) for w in learned], (1, 2, 1))
    assert found.ravel() == pytest.approx([0.8 * first / root, 0.8 * 4 / root])


def test_a_head_attends_to_the_keys_with_the_largest_biases() -> None:
    q, v = [[[0.0]]] * 3, [[[1.0]], [[2.0]], [[4.0]]]
    biases = Leaf([[log(3)], [0.0], [log(2)]])
    s = ops.hide(ops.add_bias(ops.scores(Leaf(q), Leaf(q)), biases, by_key=True), Causal() & Largest(biases, 2))
    found = run_steps(ops.weighted_sum(ops.softmax(s), Leaf(v)), 3)
    assert found.ravel() == pytest.approx([1, (3 * 1 + 2) / 4, (3 * 1 + 2 * 4) / 5])


def test_experts_in_a_grid_are_chosen_by_row_and_column() -> None:
    found = compute(ops.product_keys(LOGITS, 2).operation, [[0.0, 1.0, 5.0, 2.0]])
    assert found.tolist() == [[5, 2, 6, 3]]  # of row 0, then of row 1


def test_a_convolution_of_groups_follows_rows_in_front_of_the_text() -> None:
    first, second = [[[1.0, 2.0]], [[0.0, 1.0]]], [[[0.0, 1.0], [3.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]]
    x = [[1.0, 10.0], [2.0, 20.0]]
    led = compute(ops.CausalConvolution(2, 2, n_zeros=2), x, weights=(first, [5.0, 7.0]))
    assert led.tolist() == [[5, 7], [7, 17], [10, 27]]  # the first row is the bias alone
    found = compute(ops.CausalConvolution(2, 2, 2, n_zeros=0), led, weights=(second,))
    assert found.tolist() == [[7 + 3 * 7, 17], [10 + 3 * 17, 27]]


def test_a_shift_gives_each_token_the_value_of_the_one_before() -> None:
    assert compute(ops.PreviousToken(1), [[1.0], [2.0]]).ravel().tolist() == [0, 1]
    assert compute(ops.PreviousToken(1), [[1.0], [2.0]], input=np.array([[9.0]])).ravel().tolist() == [9, 1]


def test_blocks_are_means_weighted_by_a_softmax_and_may_overlap() -> None:
    values, scores = [[1.0], [2.0], [4.0], [8.0], [16.0]], [[0.0], [log(3)], [0.0], [0.0], [0.0]]
    found = compute(ops.WeightedBlocks(2), values, scores, weights=([[0.0], [0.0]],))
    assert found.ravel() == pytest.approx([(1 + 3 * 2) / 4, 6])  # the fifth token waits for a sixth
    overlapping = ops.OverlappingBlocks(2)
    rows = np.array([[10.0, 1.0], [20.0, 2.0], [30.0, 3.0], [40.0, 4.0]], np.float32)
    for parts in ((rows,), (rows[:3], rows[3:])):
        run: Any = SimpleNamespace(state={})
        for part in parts:
            found = overlapping.compute(run, [part, 0 * part], [np.zeros((2, 2), np.float32)], (1, 1))
        assert found.ravel() == pytest.approx([1.5, (10 + 20 + 3 + 4) / 4])


def test_the_tokens_of_the_best_blocks_are_chosen_and_those_of_the_tail() -> None:
    # five tokens in blocks of two, with keys 1 and 3: a token sees the better one of the blocks that have ended
    q, keys, of_heads = np.ones((5, 1, 1)), np.array([[1.0], [3.0]]), np.ones((5, 1))
    with_tail = compute(ops.ChooseTokens(2, "tokens of blocks", 2, tail=True), q, keys, of_heads)
    assert with_tail.tolist() == [[-1, -1, 0], [0, 1, -1], [0, 1, 2], [2, 3, -1], [2, 3, 4]]
    without = compute(ops.ChooseTokens(2, "tokens of blocks", 2), q, keys, of_heads)
    assert without.tolist() == [[-1, -1], [0, 1], [0, 1], [2, 3], [2, 3]]
    decoded = compute(ops.ChooseTokens(2, "tokens of blocks", 2, tail=True), q[:1], keys, of_heads[:1], past=4)
    assert decoded.tolist() == [[2, 3, 4]]


def test_a_token_without_anything_to_attend_to_reads_zeros() -> None:
    # as torch's scaled_dot_product_attention does
    q, v = np.ones((2, 1, 1)), np.array([[[5.0]], [[7.0]]])
    found = attend(q, q, v, mask=Causal() & Chosen(Leaf([[-1], [0]], int)))
    assert found.tolist() == [[[0]], [[5]]]


def test_blocks_of_keys_are_chosen_by_their_largest_product_and_the_nearest_always() -> None:
    q, k = [[[1.0]]] * 5, [[5.0], [9.0], [1.0], [7.0], [2.0]]
    operation = ops.ChooseTokens(2, "blocks of keys", 2, n_local=1)
    assert compute(operation, q, k)[:, 0].tolist() == [[0, -1], [0, -1], [1, 0], [1, 0], [2, 0]]


def test_a_query_sees_compressed_blocks_that_have_ended() -> None:
    q, v = [[[0.0]]] * 4, [[[1.0]], [[2.0]], [[4.0]], [[8.0]]]
    blocks, of_tokens = Leaf([[100.0], [1000.0]]), ops.scores(Leaf(q), Leaf(v))
    of_blocks = ops.hide(ops.scores(Leaf(q), blocks), CompressedBlocks(2))
    found = run_steps(
        ops.weighted_sum(ops.softmax(ops.hide(of_tokens, Causal() & Window(1)), of_blocks), Leaf(v), blocks), 4
    )
    assert found.ravel() == pytest.approx([1, (2 + 100) / 2, (4 + 100) / 2, (8 + 100 + 1000) / 3])


def test_a_bias_for_each_distance_is_that_of_the_head_and_zero_beyond() -> None:
    q, v = [[[0.0]]] * 3, [[[1.0]], [[2.0]], [[4.0]]]
    profile = [[[log(1), log(3)]], [[log(5), log(3)]], [[log(7), log(2)]]]
    bias = run_steps(ops.bias_by_distance(Leaf(profile), Leaf(q)), 3)
    found = attend(q, q, v, bias, mask=Causal())
    assert found.ravel() == pytest.approx([1, (3 * 1 + 5 * 2) / 8, (1 * 1 + 2 * 2 + 7 * 4) / 10])


def test_a_memory_of_channels_divides_the_sum_of_values_by_the_sum_of_their_weights() -> None:
    memory = ops.ExponentialMean(1)
    k, v = np.array([[0.0], [log(2)]]), np.array([[5.0], [2.0]])
    weights = (np.array([log(log(2))]), np.array([log(3)]))  # what is kept halves; a token counts 3 times at first
    # 5; then (1 · 5 + 3 · 2 · 2) / (1 + 3 · 2): the first token entered with weight 1 and did not fade yet
    assert compute(memory, k, v, weights=weights).ravel().tolist() == pytest.approx([5, 17 / 7])


def test_a_memory_of_heads_forgets_and_divides_by_at_least_one() -> None:
    memory = ops.MatrixMemory(1, 1, 1, 0.0)
    q, k, v = np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.array([4.0, 2.0]).reshape(2, 1, 1)
    enters, stays = np.array([[log(0.5)], [log(3)]]), np.zeros((2, 1))  # σ(0) = 1/2
    # 0.5 · 4 / max(0.5, 1); then (0.5 · 2 + 3 · 2) / (0.5 · 0.5 + 3)
    assert compute(memory, q, k, v, enters, stays).ravel().tolist() == pytest.approx([2, 7 / 3.25])


def test_sparse_gates_are_what_exceeds_a_quantile_of_a_normal_distribution() -> None:
    gates = [[-3.0, 3.0, -3.0, 3.0]]  # mean 0, deviation 3
    found = compute(ops.SparseActivation("linear", sparsity=0.5), gates)
    assert found.tolist() == [[0, 3, 0, 3]]
    found = compute(ops.SparseActivation("linear", sparsity=0.8), gates)
    assert found.ravel() == pytest.approx([0, 3 - 3 * 0.8416212, 0, 3 - 3 * 0.8416212])  # Φ(0.8416212) = 0.8


def test_streams_get_the_root_mean_square_of_the_first() -> None:
    found = compute(ops.norm_to_first(LOGITS, 1e-5).operation, [[[3.0, 3.0], [1.0, 1.0], [0.0, 2.0]]])
    assert found.tolist()[0][:2] == [[3, 3], [3, 3]]
    assert found[0, 2] == pytest.approx([0, 2 * 3 / sqrt(2)])


def test_a_part_of_each_token_is_that_of_the_layer_or_a_given_one() -> None:
    parts = [[[1.0], [2.0]], [[3.0], [4.0]]]
    assert compute(ops.SelectPart(1), parts).tolist() == [[2], [4]]
    assert compute(ops.SelectLayer(), parts).tolist() == [[1], [3]]  # outside of layers, the first


def test_a_table_may_have_a_row_for_ids_beyond_it() -> None:
    table = ([[5.0], [6.0]],)
    assert compute(ops.LookupKnown(0), [1, 7], weights=table).tolist() == [[6], [5]]
    placeholders = ops.LookupPlaceholders(0, (1, 7))
    assert compute(placeholders, [1, 7, 0], weights=table).tolist() == [[5], [5], [5]]
    with pytest.raises(ParamcountError, match="unknown token id 8"):
        compute(placeholders, [8], weights=table)


def test_pairs_of_tokens_are_related_by_segment_or_by_distance() -> None:
    assert compute(ops.compare_segments(LOGITS).operation, [0, 1, 1]).tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    mixed = compute(ops.SegmentBuckets(4, 2, n_segments=3), [0, 2])
    assert mixed.tolist() == [[0, 4 + 0 * 3 + 2], [4 + 2 * 3 + 0, 0]]
    assert compute(ops.Distances(), [[0.0]] * 2, past=1).tolist() == [[2, 3, 4], [1, 2, 3]]  # 3 + key - query
    found = compute(ops.SelectByPair(1), [[1, 0]], [[[5.0, 6], [7, 8]]])
    assert found.tolist() == [[[7, 8], [5, 6]]]
    assert (compute(ops.SelectByPair(2), [[1, 0]], [[[5.0, 6], [7, 8]]])[0, 0] == [6, 8]).all()


def test_a_key_of_its_own_takes_part_in_the_softmax_of_its_query_alone() -> None:
    q, k, v = [[[0.0]], [[0.0]]], [[[0.0]], [[0.0]]], [[[1.0]], [[2.0]]]
    own = ([[[0.0]], [[0.0]]], [[[10.0]], [[20.0]]], [[log(2)], [log(3)]])
    own_k, own_v, bias = map(Leaf, own)
    of_text = ops.hide(ops.scores(Leaf(q), Leaf(k)), Causal())
    a = ops.softmax(of_text, ops.own_scores(Leaf(q), own_k, bias))
    found = run_steps(ops.add_own(ops.weighted_sum(a, Leaf(v)), a, own_v), 2)
    assert found.ravel() == pytest.approx([(1 + 2 * 10) / 3, (1 + 2 + 3 * 20) / 5])


def test_texts_are_pooled() -> None:
    x, scores = [[1.0], [2.0], [6.0]], [[0.0], [log(3)], [0.0]]
    assert compute(ops.LastPosition(), x).tolist() == [[6]]
    assert compute(ops.Mean(), x).tolist() == [[3]]
    assert compute(ops.best_position(LOGITS, LOGITS).operation, x, scores).tolist() == [[2], [2], [2]]
    assert compute(ops.weighted_mean(LOGITS, LOGITS).operation, x, scores).ravel() == pytest.approx(
        [(1 + 3 * 2 + 6) / 5]
    )
    assert compute(ops.text_alone(LOGITS).operation, x, past=-1).tolist() == [[2], [6]]


def test_what_stands_in_front_of_a_text_stands_there_once() -> None:
    assert compute(ops.JoinPrompt(), [[9.0]], [[1.0], [2.0]], past=1).tolist() == [[9], [1], [2]]
    assert compute(ops.JoinPrompt(), [[9.0]], [[1.0], [2.0]], past=4).tolist() == [[1], [2]]


def test_attention_weights_may_be_collision_probabilities() -> None:
    """Equal, orthogonal and opposite keys are on one side of a random hyperplane always, half of the time and never."""
    q, k = [[[1.0, 0.0]]], [[[1.0, 0.0]], [[0.0, 1.0]], [[-1.0, 0.0]]]
    v = [[[1.0, 0.0]], [[10.0, 4.0]], [[100.0, 100.0]]]
    found = run_steps(ops.weighted_sum(ops.collisions(ops.scores(Leaf(q), Leaf(k), 1.0), 2), Leaf(v)), 3)
    assert found.ravel() == pytest.approx([1 + 10 / 4, 1])


def test_the_pseudoinverse_of_attention_weights_undoes_them() -> None:
    x = [[[3.0, 0.0]], [[0.0, 3.0]]]
    v = np.array([[[1.0, 2.0]], [[5.0, -1.0]]])
    weighted = attend(x, x, v)
    assert not np.allclose(weighted, v)
    a = ops.pseudoinverse(ops.softmax(ops.scores(Leaf(x), Leaf(x))))
    assert run_steps(ops.weighted_sum(a, Leaf(weighted)), 2) == pytest.approx(v, abs=1e-4)


def test_marked_keys_are_seen_from_outside_of_their_window() -> None:
    q, v = np.zeros((5, 1, 1)), np.array([1.0, 10.0, 100.0, 1000.0, 10000.0]).reshape(5, 1, 1)
    near = Window(2, 1) | GlobalTokens(Leaf([1, 0, 0, 0, 0], int))
    assert attend(q, q, v, mask=near).ravel() == pytest.approx([5.5, 37, 277.75, 2775.25, 11001 / 3])


def test_a_convolution_per_head_reads_both_sides() -> None:
    """Each head has its own values for the token before, the token itself and the next one."""
    x, kernel = [[[1.0], [1.0]], [[2.0], [2.0]], [[4.0], [4.0]]], [[[[1.0], [10.0], [100.0]]], [[[0.0], [0.0], [1.0]]]]
    found = compute(ops.HeadConvolution(3), x, weights=(kernel,))
    assert found[:, :, 0].tolist() == [[210, 2], [421, 4], [42, 0]]


def test_the_fourier_transform_is_over_tokens_and_channels() -> None:
    assert compute(ops.Fourier(), [[1.0, 2.0], [4.0, 8.0]]).tolist() == [[15, -5], [-9, 3]]


def test_the_part_of_a_vector_along_another() -> None:
    assert compute(ops.project_onto(LOGITS, LOGITS).operation, [[3.0, 4.0]], [[0.0, 1.0]]).tolist() == [[0, 4]]


def test_an_image_token_behind_another_token_may_stay() -> None:
    x, rows = np.zeros((4, 1)), [[1.0], [2.0]]
    assert compute(ops.InsertUnlessAfter(9, 8), x, [8, 9, 9, 9], rows).ravel().tolist() == [0, 0, 1, 2]


def test_no_rows_are_rotated_to_no_rows() -> None:
    """Blocks of a text that is shorter than one of them."""
    run: Any = SimpleNamespace(positions=np.arange(0), layer=0, state={})
    empty = np.zeros((0, 1, 4), np.float32)
    for pairing in ("halves", "interleaved"):
        assert ops.Rotary(Rope(10_000.0), pairing).compute(run, [empty], [], empty.shape).shape == (0, 1, 4)


def test_tokens_of_a_page_stand_in_rows_that_end_with_a_marker() -> None:
    """Two rows of one patch, two tokens in front of them and a marker behind each row."""
    page = ops.PagePlaces(2, 2, 2)
    assert compute(page, [0] * 6, np.zeros((3, 4, 2))).tolist() == [[0, 0], [1, 1], [2, 2], [2, 3], [3, 2], [3, 3]]


def test_patches_have_their_places_row_by_row_in_the_image_or_if_it_lay_on_its_side() -> None:
    """Two rows of three patches."""
    image = np.zeros((3, 4, 6))
    assert compute(ops.PatchPlaces(2, 2), image).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    found = compute(ops.SidewaysPlaces(2, 2), image)
    assert found.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]
