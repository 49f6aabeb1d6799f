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
from math import exp, log, sqrt
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
from paramcount.flow import Axes, Data, Rope, operations
from paramcount.flow.masks import Causal, Chosen, Chunk, CompressedBlocks, GlobalTokens, Largest, Mask, Pairs, Window
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
    assert ops.Activation("unheard of").describe() == "not described"


# ---- values


def compute(
    operation: Operation,
    *inputs: Any,
    weights: tuple[Any, ...] = (),
    past: int = 0,
    state: dict[str, Array] | None = None,
    shape: tuple[int, ...] = (),
) -> Array:
    arrays = [np.asarray(x, np.int64 if np.asarray(x).dtype.kind == "i" else np.float32) for x in inputs]
    n = len(arrays[0]) if arrays else 1
    run: Any = SimpleNamespace(positions=np.arange(past, past + n), layer=0, state={} if state is None else state)
    return operation.compute(run, arrays, [np.asarray(w, np.float32) for w in weights], shape or arrays[0].shape)


LOGITS = Data("logits", (), ("tokens", 3))
PATCHES = Data("x", (), ("image", 2, 2))
IMAGE = np.arange(24.0).reshape(1, 4, 6)  # one channel, rows 0–5, 6–11, 12–17, 18–23
ROWS = [[1.0], [2.0], [3.0], [4.0]]
PAIR, TWICE = [[0, 0], [0, 1]], [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]]
ABOVE = [[[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]]  # a kernel of the value above
TURNED = [np.cos(1) - np.sin(1), np.cos(1) + np.sin(1)]
LARGEST = np.finfo(np.float32).max
# (operation, inputs, weights, values row by row)
VALUES: list[tuple[Operation, list[Any], list[Any], list[Any]]] = [
    (ops.RowConvolution(2), [ROWS], [[[[10.0, 100.0]]]], [100, 210, 320, 430]),
    (ops.RowConvolution(3), [ROWS], [[[[1.0, 10.0, 100.0]]], [0.5]], [210.5, 321.5, 432.5, 43.5]),
    (ops.RowConvolution(2, padding=ops.FEWER_BEFORE), [ROWS], [[[[10.0, 100.0]]]], [210, 320, 430, 40]),
    (ops.RowConvolution(3, 2, ops.BEFORE), [ROWS], [[[[1.0, 10.0, 100.0]]]], [210, 432]),
    (ops.HeadConvolution(3), [[[[1.0], [1.0]], [[2.0], [2.0]]]],
     [[[[[1.0], [10.0], [100.0]]], [[[0.0], [0.0], [1.0]]]]], [210, 2, 21, 0]),
    (ops.PatchConvolution(3), [ROWS, [[0, 0], [1, 0], [0, 1], [1, 1]]], [ABOVE], [0, 1, 0, 3]),
    (ops.BandConvolution(3), [[[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]]], [ABOVE, [10.0]],
     [10, 11, 12, 10, 14, 15]),
    (ops.VideoConvolution(1, frames=3), [np.array(ROWS).reshape(1, 4, 1)],
     [np.reshape([100.0, 10, 1], (1, 1, 3, 1, 1)), [0.5]], [1.5, 12.5, 123.5, 234.5]),
    (ops.VideoConvolution(1, 2, frames=4), [np.array(ROWS).reshape(1, 4, 1)],
     [np.reshape([1000.0, 100, 10, 1], (1, 1, 4, 1, 1)), [0.5]], [12.5, 1234.5]),
    (ops.ImageConvolution(3, padding=ops.Zeros(2)), [[[1.0]]], [np.ones((1, 1, 3, 3))], [1] * 9),
    (ops.ImageConvolution(3, 2, ops.BEHIND), [np.ones((16, 1))], [np.ones((1, 1, 3, 3)), [0.5]], [9.5, 6.5, 6.5, 4.5]),
    (ops.ImageConvolution(1, grouped=True), [TWICE[:1]], [np.arange(1.0, 5).reshape(4, 1, 1, 1)], [1, 2, 30, 40]),
    (ops.BatchNorm(1.0), [[[3.0, 13.0]]], [[2.0, 3.0], [0.5, 0.25], [1.0, 5.0], [3.0, 15.0], 7.0], [2.5, 6.25]),
    # arXiv:1803.08494, section 3.1: of the first two channels the mean is 4 and the variance 5; of the others, 0
    (ops.GroupNorm(4.0, 2), [[[1.0, 3.0, 2.0, 2.0], [5.0, 7.0, 2.0, 2.0]]], [[1.0, 1, 1, 3], [0.0, 0, 0, 9]],
     [-1, -1 / 3, 0, 9, 1 / 3, 1, 0, 9]),
    (ops.norm_to_first(LOGITS, 1e-5).operation, [[[[3.0, 3.0], [0.0, 2.0]]]], [], [3, 3, 0, 2 * 3 / sqrt(2)]),
    (ops.Fourier(), [[[1.0, 2.0], [4.0, 8.0]]], [], [15, -5, -9, 3]),
    (ops.Sinusoids("halves", "base"), [np.zeros((1, 4))], [], [0, 0, 1, 1]),
    (ops.Sinusoids("cosines first", "base"), [np.zeros((1, 4))], [], [1, 1, 0, 0]),
    (ops.RotaryBySquare(Rope(1.0), "interleaved"), [[[1.0, 0]] * 3], [],
     [1, 0, np.cos(1), np.sin(1), np.cos(4), np.sin(4)]),
    (ops.RotaryApart(Rope(100.0)), [np.ones((1, 1, 4)), [[0, 1]]], [], [*TURNED, 1, 1]),
    (ops.RotaryApart(Rope(100.0)), [np.ones((1, 1, 4)), [[1, 0]]], [], [1, 1, *TURNED]),
    (ops.SparseActivation("linear", sparsity=0.8), [[[-3.0, 3.0]]], [], [0, 3 - 3 * 0.8416212]),  # Φ(0.8416212) = 0.8
    (ops.ClipToStored(), [[[-9.0, 0.5, 9.0]]], [-1, 2], [-1, 0.5, 2]),
    (ops.SubtractVector(), [[[5.0, 6.0]]], [[1.0, 2.0]], [4, 4]),
    (ops.MaskTokens((0, -2)), [[[1.0, 2.0, 3.0, 4.0]]], [], [-LARGEST, 2, -LARGEST, 4]),
    (ops.project_onto(LOGITS, LOGITS).operation, [[[3.0, 4.0]], [[0.0, 1.0]]], [], [0, 4]),
    # A memory: the first token enters whole; a = ½ if the recurrence gate is open
    (ops.GatedUnit(1), [[[2.0], [2.0]], [[0.5], [0.5]], [[1.0], [1.0]]], [[log(2 ** (1 / 8) - 1)]],
     [1, 0.5 + sqrt(0.75)]),
    # 5; then (1 · 5 + 3 · 2 · 2) / (1 + 3 · 2): the first token entered with weight 1 and did not fade yet
    (ops.ExponentialMean(1), [[[0.0], [log(2)]], [[5.0], [2.0]]], [[log(log(2))], [log(3)]], [5, 17 / 7]),
    # σ(0) = 1/2: 0.5 · 4 / max(0.5, 1); then (0.5 · 2 + 3 · 2) / (0.5 · 0.5 + 3)
    (ops.MatrixMemory(1, 1, 1, 0.0), [*[[[[1.0]], [[1.0]]]] * 2, [[[4.0]], [[2.0]]], [[log(0.5)], [log(3)]],
     [[0.0], [0.0]]], [], [2, 7 / 3.25]),
    (ops.PreviousToken(1), [[[1.0], [2.0]]], [], [0, 1]),
    (ops.BlockSums(2), [[*ROWS, [10.0]]], [], [3, 17]),  # the last block takes what is left
    (ops.BlockSums(4), [ROWS[:2]], [], []),
    (ops.mean_of_blocks(PATCHES, 2).operation, [[[1.0], [3.0], [5.0], [9.0], [100.0]]], [], [2, 7]),
    (ops.WeightedBlocks(2), [ROWS, [[0.0], [log(3)], [0.0], [0.0]]], [[[0.0], [0.0]]], [(1 + 3 * 2) / 4, 3.5]),
    (ops.OverlappingBlocks(2), [TWICE, [[0.0, 0.0]] * 4], [[[0.0, 0.0]] * 2], [15, (1 + 2 + 30 + 40) / 4]),
    (ops.CausalDistanceBuckets(8, 16), [[[0.0]] * 3], [], [0, 0, 0, 1, 0, 0, 2, 1, 0]),
    (ops.DistanceBuckets(8, 4), [[[0.0]] * 4], [], [0, 5, 6, 7, 1, 0, 5, 6, 2, 1, 0, 5, 3, 2, 1, 0]),
    (ops.BlockDistanceBuckets(8, 4, block=2), [[[0.0]] * 5], [], [0, 5, 0, 5, 1, 0, 1, 0, 1, 0]),
    (ops.Distances(), [[[0.0]] * 2], [], [2, 3, 1, 2]),  # 2 + key - query
    (ops.compare_segments(LOGITS).operation, [[0, 1]], [], [0, 1, 1, 0]),
    (ops.SegmentBuckets(4, 2, n_segments=3), [[0, 2]], [], [0, 4 + 0 * 3 + 2, 4 + 2 * 3 + 0, 0]),
    (ops.SelectByPair(1), [[[1, 0]], [[[5.0, 6], [7, 8]]]], [], [7, 8, 5, 6]),
    (ops.PatchDistances(1, 2), [PAIR], [], [1, 0, 2, 1]),
    (ops.PatchDistances(1, 2), [[[0, 0], [0, 5]]], [], [1, 0, 2, 1]),  # those beyond the table are in other windows
    (ops.ClassPatchDistances(1, 2), [PAIR], [], [5, 3, 3, 4, 1, 0, 4, 2, 1]),
    (ops.product_keys(LOGITS, 2).operation, [[[0.0, 1.0, 5.0, 2.0]]], [], [5, 2, 6, 3]),  # of row 0, then of row 1
    (ops.limit_capacity(LOGITS, 1).operation, [[[0.75, 0], [0.75, 0], [0, 0.75]]], [], [0.75, 0, 0, 0, 0, 0.75]),
    # five tokens in blocks of two, with keys 1 and 3: a token sees the better one of the blocks that have ended
    (ops.ChooseTokens(2, "tokens of blocks", 2, tail=True), [np.ones((5, 1, 1)), [[1.0], [3.0]], np.ones((5, 1))], [],
     [-1, -1, 0, 0, 1, -1, 0, 1, 2, 2, 3, -1, 2, 3, 4]),
    (ops.ChooseTokens(2, "tokens of blocks", 2), [np.ones((5, 1, 1)), [[1.0], [3.0]], np.ones((5, 1))], [],
     [-1, -1, 0, 1, 0, 1, 2, 3, 2, 3]),
    (ops.ChooseTokens(2, "blocks of keys", 2, n_local=1), [[[[1.0]]] * 5, [[5.0], [9.0], [1.0], [7.0], [2.0]]], [],
     [0, -1, 0, -1, 1, 0, 1, 0, 2, 0]),
    (ops.LookupKnown(1, (7, 2)), [[0, 7, 2]], [[[0.0], [10.0], [20.0]]], [0, 10, 10]),
    (ops.NearestRow((70, 80)), [[[1.0, 1.0]]], [[[5.0, 5.0], [1.0, 0.0]]], [80]),  # not the largest product
    (ops.PlaceTables(), [[[0, 2], [1, 0]]], [[[[1.0], [2.0], [3.0]], [[10.0], [20.0], [30.0]]]], [13, 21]),
    (ops.SelectPart(1), [[[[1.0], [2.0]], [[3.0], [4.0]]]], [], [2, 4]),
    (ops.SelectLayer(), [[[[1.0], [2.0]], [[3.0], [4.0]]]], [], [1, 3]),  # outside of layers, the first
    (ops.InsertLearned(9), [[[1.0, 2.0], [3.0, 4.0]], [9, 1]], [[7.0, 8.0]], [7, 8, 3, 4]),
    (ops.InsertUnlessAfter(9, 8), [[[0.0]] * 4, [8, 9, 9, 9], [[1.0], [2.0]]], [], [0, 0, 1, 2]),
    (ops.LastClassToken(), [[[1.0, 2.0]]], [[[8.0, 9.0]]], [1, 2, 8, 9]),
    (ops.end_rows_of_ids(PATCHES, 9).operation, [[1, 2, 3, 4]], [], [1, 2, 9, 3, 4, 9]),
    (ops.enlarge(PATCHES).operation, [TWICE], [],
     [n for i in (1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4) for n in (i, 10 * i)]),
    (ops.transpose_heads(PATCHES).operation, [[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]], [], [0, 4, 2, 6, 1, 5, 3, 7]),
    (ops.PatchWindows(1, 1, 2, 5), [IMAGE], [], ([0] * 8 + [1] * 4) * 2),  # squares of 2 × 2, two a side
    (ops.PaddedPlaces(2, 2, window=4), [IMAGE], [], [0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2, 0, 3, 1, 3]),
    (ops.PaddedWindows(2, 2, window=4), [IMAGE], [], [0, 0, 1, 0, 0, 1, 1, 1]),
    # windows of 2, shifted by 1: the first row and the first column have windows of their own
    (ops.PaddedWindows(1, 1, window=2, shift=1), [IMAGE], [],
     [0, 1, 1, 2, 2, 3, *[4, 5, 5, 6, 6, 7] * 2, 8, 9, 9, 10, 10, 11]),
    (ops.SidewaysPlaces(2, 2), [np.zeros((3, 4, 6))], [], [0, 0, 0, 1, 1, 0, 1, 1, 2, 0, 2, 1]),
    (ops.PagePlaces(2, 2, 2), [[0] * 6, np.zeros((3, 4, 2))], [], [0, 0, 1, 1, 2, 2, 2, 3, 3, 2, 3, 3]),
    (ops.ClassTokenPlaces(2, 3), [IMAGE], [], [0, 0, 1, 1, 2, 1, 1, 2, 2, 2]),
    (ops.LastClassTokenPlaces(2, 3), [IMAGE], [], [1, 1, 2, 1, 1, 2, 2, 2, 0, 0]),
    # arXiv:2409.12191, figure 3: a token, an image of 2 × 3, then text from 1 + 3 on
    (ops.TokenPlaces(3, 2, 2, 7), [[1, *[7] * 6, 4], IMAGE], [],
     [0, 0, 0, *[1, 1, 1], *[1, 1, 2], *[1, 1, 3], *[1, 2, 1], *[1, 2, 2], *[1, 2, 3], 4, 4, 4]),
    (ops.Patches(2, 2, axes="hwc"), [np.arange(8.0).reshape(2, 2, 2)], [], [0, 4, 1, 5, 2, 6, 3, 7]),
    (ops.MergeSquaresByChannel(4), [TWICE], [], [1, 2, 3, 4, 10, 20, 30, 40]),
    (ops.MeanOfSquares(4), [np.arange(16.0).reshape(16, 1)], [], [2.5, 4.5, 10.5, 12.5]),
    (ops.EarlierTokens(), [ROWS, [[0.0], [0.0]]], [], [1, 2]),
    (ops.OtherTokens(), [ROWS, [[0.0], [0.0]]], [], [3, 4]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "inputs", "weights", "expected"), VALUES, ids=lambda value: getattr(value, "label", "")
)
def test_an_operation_computes_what_its_docstring_says(
    operation: Operation, inputs: list[Any], weights: list[Any], expected: list[Any]
) -> None:
    assert compute(operation, *inputs, weights=tuple(weights)).ravel() == pytest.approx(expected, rel=1e-6, abs=1e-6)


def attend_equally(mask: Mask | None = None, score: float = 0.0) -> Array:
    """Attention of three tokens with equal scores to values 1, 2 and 4."""
    q = k = np.zeros((3, 1, 2))
    return attend(q, k, np.array([[[1.0]], [[2.0]], [[4.0]]]), np.full((3, 3, 1), score), mask=mask).ravel()


def test_attention_with_equal_scores_is_the_mean_of_the_visible_values() -> None:
    assert attend_equally(Causal()) == pytest.approx([1, 3 / 2, 7 / 3])
    assert attend_equally(Causal() & Window(2)) == pytest.approx([1, 3 / 2, 3])
    assert attend_equally() == pytest.approx([7 / 3] * 3)
    assert attend_equally(Causal() & Chunk(2)) == pytest.approx([1, 3 / 2, 4])
    assert attend_equally(Window(1, 1)) == pytest.approx([3 / 2, 3, 4])
    assert attend_equally(Causal(), score=90.0) == pytest.approx([1, 3 / 2, 7 / 3])


@pytest.mark.parametrize(
    ("mask", "pairs", "expected"),
    [  # rows in front of the text have the positions -2 and -1, or -1
        (Causal(), Pairs(4, 4, 2), [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]),
        (Causal(), Pairs(2, 3, 2), [[1, 1, 0], [1, 1, 1]]),
        (Window(1, 0), Pairs(2, 3, 2), [[1, 1, 0], [1, 0, 1]]),
        (Window(1, 0), Pairs(3, 3, 2), [[1, 1, 1], [1, 1, 0], [1, 0, 1]]),
        (Window(2, 2), Pairs(4, 4, 4), [[1, 1, 1, 0], [1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]]),
        (Chunk(2, offset=1), Pairs(4, 4, 3), [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 1], [1, 0, 1, 1]]),
    ],
)
def test_a_mask_shows_pairs_of_tokens_and_rows_in_front_of_them(
    mask: Mask, pairs: Pairs, expected: list[list[int]]
) -> None:
    found: Any = mask.show(pairs, iter(()))
    assert found.astype(int).tolist() == expected


def test_neighbouring_heads_share_keys_and_masks() -> None:
    """Of four heads, two share a key, and what was chosen for a pair of heads."""
    q, k = np.zeros((1, 4, 1)), np.zeros((2, 2, 1))
    v = np.array([[[1.0], [10.0]], [[3.0], [30.0]]])
    chosen = Leaf([[[0, -1], [0, 1]]], int)
    assert attend(q, k, v, mask=Chosen(chosen)).ravel().tolist() == [1, 1, 20, 20]


def test_a_query_sees_compressed_blocks_that_have_ended() -> None:
    q, v = [[[0.0]]] * 4, [[[1.0]], [[2.0]], [[4.0]], [[8.0]]]
    blocks, of_tokens = Leaf([[100.0], [1000.0]]), ops.scores(Leaf(q), Leaf(v))
    of_blocks = ops.hide(ops.scores(Leaf(q), blocks), CompressedBlocks(2))
    found = run_steps(
        ops.weighted_sum(ops.softmax(ops.hide(of_tokens, Causal() & Window(1)), of_blocks), Leaf(v), blocks), 4
    )
    assert found.ravel() == pytest.approx([1, (2 + 100) / 2, (4 + 100) / 2, (8 + 100 + 1000) / 3])


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


def test_a_value_that_two_axes_would_share_does_not_rotate() -> None:
    """VisionRotaryEmbedding of the reference has head_dim // 2 = 0 frequencies, and a product of no values is 0."""
    axes = Axes((0, 0), "in turns")
    assert compute(ops.RotaryAt(Rope(10_000.0), axes=axes), [[3.0], [2.0]], [[0, 0], [0, 1]]).ravel().tolist() == [0, 0]


def test_the_step_of_a_state_space_is_limited_after_its_bias() -> None:
    inputs = [[2.0], [2.0]], [[50.0], [50.0]], [[1.0], [1.0]], [[1.0], [1.0]]
    weights = ([0.0], [log(log(2))], [0.0])
    assert compute(ops.StateSpaceDual(1, 1, 1, (0.0, 1.0)), *inputs, weights=weights).ravel() == pytest.approx([2, 3])


def test_linear_attention_sums_values_that_fade() -> None:
    found = compute(
        ops.LinearAttention(1, 1, 1), *[[[[1.0]], [[1.0]]]] * 2, [[[2.0]], [[4.0]]], weights=([[[log(2)]]],)
    )
    assert found.ravel() == pytest.approx([2, 5])
    with pytest.raises(ParamcountError, match="decays"):
        compute(ops.LinearAttention(1, 1, 1), *[[[[1.0]]]] * 3)


def test_a_head_of_one_value_is_both_halves_of_its_pair() -> None:
    # apply_rotary_pos_emb of the reference: x·cos − x·sin, twice, so that q · k counts twice; position 1 turns by 1
    q, k = compute(ops.Rotary(Rope(10_000.0)), [[3.0], [2.0]], past=1)
    turned = [np.cos(i) - np.sin(i) for i in (1, 2)]
    assert q[0] * k[0] == pytest.approx(2 * 3 * 2 * turned[0] * turned[1], rel=1e-6)


def test_what_stands_in_front_of_a_text_stands_there_once() -> None:
    assert compute(ops.JoinPrompt(), [[9.0]], [[1.0], [2.0]], past=1).tolist() == [[9], [1], [2]]
    assert compute(ops.JoinPrompt(), [[9.0]], [[1.0], [2.0]], past=4).tolist() == [[1], [2]]


def compute_steps(out: Data, logits: Any, **weights: Any) -> Array:
    """The value of steps that follow LOGITS."""
    if out is LOGITS:
        return np.asarray(logits, np.float32)
    inputs = [compute_steps(data, logits, **weights) for data in out.inputs]
    return compute(out.operation, *inputs, weights=tuple(weights[weight.name] for weight in out.weights))


def test_experts_of_other_groups_are_not_chosen() -> None:
    scores = [[5.0, 1.0, 4.0, 3.0]]
    best = ops.limit_to_groups(LOGITS, 2, 1)
    assert compute_steps(ops.top_k(LOGITS, 2, best), scores).tolist() == [[5, 1, 0, 0]]
    best = ops.limit_to_groups(LOGITS, 2, 1, "top 2")
    assert compute_steps(ops.top_k(LOGITS, 2, best), scores).tolist() == [[0, 0, 4, 3]]
    assert compute_steps(ops.limit_to_groups(LOGITS, 2, 1, excluded=2.0), scores).tolist() == [[5, 1, 2, 2]]
    assert ops.limit_to_groups(LOGITS, 1, 1) is LOGITS


def test_a_setting_that_is_unknown_cannot_be_computed() -> None:
    with pytest.raises(ParamcountError, match="the setting norm_eps is unknown"):
        compute(ops.Norm("rms", Unknown("norm_eps")), [[1.0]], weights=([1.0],))


def test_queries_grow_with_the_position_in_steps_or_with_its_logarithm() -> None:
    x = [[1.0]] * 6
    steps = [1, 1, 1, 1, 1 + 0.5 * log(2), 1 + 0.5 * log(2)]
    assert compute(ops.ScaleInSteps(4, 0.5), x)[:, 0] == pytest.approx(steps)
    assert compute(ops.ScaleByLogarithm(4), x)[:, 0] == pytest.approx([1, 1, 1, 1, log(5) / log(4), log(6) / log(4)])
    ratios = [1, 1, *(1 + 0.5 * log((i + 1) / 2) for i in range(2, 6))]
    assert compute(ops.ScaleByLogOfRatio(2, 0.5, 1), x)[:, 0] == pytest.approx(ratios)
    power = [(1 + (i + 1) / 8) ** 0.5 for i in range(6)]
    assert compute(ops.ScaleByPower(8, 0.5, 1), x)[:, 0] == pytest.approx(power)


def test_lightning_attention_forgets_less_in_later_layers() -> None:
    x = np.ones((2, 1, 1), np.float32)
    run: Any = SimpleNamespace(layer=1, state={})  # half of the slope 2⁻⁸
    found = ops.LinearAttention(1, 1, 1, n_layers=3).compute(run, [x, x, x], [], (2, 1, 1))
    assert found.ravel() == pytest.approx([1, 1 + exp(-(2**-8) * (0.5 + 1e-5))], rel=1e-7)


def test_the_base_of_qwen_grows_in_steps_beyond_the_length_of_training() -> None:
    rope = Rope(10_000.0, ops.StepScaling(8))
    for n_tokens, alpha in ((5, 1), (8, 1), (9, 3), (16, 3), (17, 7)):
        assert rope.frequencies(4, n_tokens)[1] == pytest.approx((10_000 * alpha**2) ** -0.5)


def test_a_token_without_anything_to_attend_to_reads_zeros() -> None:
    # as torch's scaled_dot_product_attention does
    q, v = np.ones((2, 1, 1)), np.array([[[5.0]], [[7.0]]])
    found = attend(q, q, v, mask=Causal() & Chosen(Leaf([[-1], [0]], int)))
    assert found.tolist() == [[[0]], [[5]]]


def test_texts_are_pooled() -> None:
    x, scores = [[1.0], [2.0], [6.0]], [[0.0], [log(3)], [0.0]]
    assert compute(ops.LastPosition(), x).tolist() == [[6]]
    assert compute(ops.Mean(), x).tolist() == [[3]]
    assert compute(ops.best_position(LOGITS, LOGITS).operation, x, scores).tolist() == [[2], [2], [2]]
    assert compute(ops.weighted_mean(LOGITS, LOGITS).operation, x, scores).ravel() == pytest.approx(
        [(1 + 3 * 2 + 6) / 5]
    )
    assert compute(ops.text_alone(LOGITS).operation, x, past=-1).tolist() == [[2], [6]]


def test_marked_keys_are_seen_from_outside_of_their_window() -> None:
    q, v = np.zeros((5, 1, 1)), np.array([1.0, 10.0, 100.0, 1000.0, 10000.0]).reshape(5, 1, 1)
    near = Window(2, 1) | GlobalTokens(Leaf([1, 0, 0, 0, 0], int))
    assert attend(q, q, v, mask=near).ravel() == pytest.approx([5.5, 37, 277.75, 2775.25, 11001 / 3])


def test_no_rows_are_rotated_to_no_rows() -> None:
    """Blocks of a text that is shorter than one of them."""
    run: Any = SimpleNamespace(positions=np.arange(0), layer=0, state={})
    empty = np.zeros((0, 1, 4), np.float32)
    for pairing in ("halves", "interleaved"):
        assert ops.Rotary(Rope(10_000.0), pairing).compute(run, [empty], [], empty.shape).shape == (0, 1, 4)
