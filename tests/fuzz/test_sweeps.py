"""Expressions and axes of sweeps, spoilt or made up: counted exactly, or refused in one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import paramcount as pc
from paramcount.sweeping.axes import parse_axes, parse_expression
from paramcount.sweeping.sweep import make_sweep
from paramcount.symbolic.compiled import evaluate_arrays
from paramcount.symbolic.trees import evaluate
from tests.fuzz.frame import call_or_refuse, often, seldom
from tests.fuzz.values import VALUES

pytestmark = pytest.mark.fuzz

MODEL = pc.load("llama-3.1-8b")
WORDS = (
    "d_model", "n_layers", "d_ff", "heads", "hidden_size", "tie_word_embeddings", "vision.d_model", "x", "0", "1", "7",
    "64", "4096", "9" * 18, "9" * 19, "+", "-", "*", "//", "/", "**", "(", ")", ":", ",", "=", " ", "[", "]", "'",
    "null", "true", "__import__", ".", "0x1", "1e9", "²", "\n", "\x1b", "%",
)  # fmt: skip
EXPRESSIONS = st.lists(st.sampled_from(WORDS), max_size=14).map("".join)
SIZES = st.sampled_from(["n_layers", "d_model", "d_ff", "n_kv_heads", "layers", "tie_word_embeddings", "window", ""])
TEXTS = st.sampled_from(["1:3", "8:2", "1:5:2", "1,2", "true,false", "4*d_model", "n_layers//0", "[1]"])
VALID = st.recursive(
    st.integers(0, 10**18 - 1).map(str) | st.sampled_from(["n", "m"]),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//"]), inner).map(" ".join)
        | inner.map(lambda text: f"({text})")
        | inner.map(lambda text: f"-{text}")
    ),
    max_leaves=8,
)


@often
@given(EXPRESSIONS | st.text(max_size=30))
def test_any_expression_is_evaluated_or_rejected(text: str) -> None:
    expression = call_or_refuse(lambda: parse_expression(text, "d_ff"))
    if expression is not None:
        values = dict.fromkeys(expression.names, 3)  # type: ignore[attr-defined]
        found, is_broken = evaluate_arrays(expression.tree, values)  # type: ignore[attr-defined]
        assert type(found) is int
        assert evaluate(expression.tree, values) == (None if is_broken else found)  # type: ignore[attr-defined]


@often
@given(VALID, st.integers(0, 2**31), st.integers(0, 2**31))
def test_a_valid_expression_has_the_value_that_python_gives_it(text: str, n: int, m: int) -> None:
    expression = call_or_refuse(lambda: parse_expression(text, "d_ff"))
    if expression is None:
        assert len(text) > 200
        return
    value, is_broken = evaluate_arrays(expression.tree, {"n": n, "m": m})  # type: ignore[attr-defined]
    try:
        expected = eval(text, {"n": n, "m": m})  # noqa: S307
    except ZeroDivisionError:
        assert is_broken
        return
    assert (value, bool(is_broken)) == (expected, False)


@seldom
@given(st.lists(st.tuples(SIZES, st.sampled_from(["=", "", " = "]), EXPRESSIONS | TEXTS).map("".join), max_size=3))
def test_any_settings_are_swept_or_rejected(settings: list[str]) -> None:
    sweep = call_or_refuse(lambda: make_sweep(MODEL, parse_axes(settings)))
    if sweep is not None and sweep.combinations < 1000:  # type: ignore[attr-defined]
        for chunk in sweep.chunks():  # type: ignore[attr-defined]
            assert len(chunk.columns["total"]) == chunk.combinations - chunk.invalid
        for frame in sweep.invalid():  # type: ignore[attr-defined]
            assert all(reason and reason.isprintable() for reason in frame["reason"])


@seldom
@given(st.dictionaries(st.sampled_from(["n_layers", "d_ff", "tie_word_embeddings", "x"]) | st.text(max_size=4), VALUES))
def test_any_mapping_of_sizes_is_swept_or_rejected(sizes: dict[str, object]) -> None:
    sweep = call_or_refuse(lambda: pc.sweep(MODEL, sizes))
    if sweep is not None and sweep.combinations < 1000:  # type: ignore[attr-defined]
        assert sum(len(frame) for frame in sweep) <= sweep.combinations  # type: ignore[attr-defined,misc]
