"""The core: data flows, operations hold weights, and every reading follows from that."""

from __future__ import annotations

from sys import getrecursionlimit

import pytest

import paramcount as pc
from paramcount import flow as ops
from paramcount.errors import ParamcountError
from paramcount.flow import Data


def weight_names(out: Data) -> list[str]:
    return [held.name for held in ops.list_rows(out)]


def test_a_residual_checks_that_shapes_meet() -> None:
    with pytest.raises(ParamcountError, match=r"shape \['tokens', 4\] meets \['tokens', 5\]"):
        ops.given("x", "tokens", 4) + ops.given("x", "tokens", 5)
    with pytest.raises(ParamcountError, match="meets"):
        ops.given("x", "tokens", 4) * ops.given("x", "tokens", 4, 1)
    with pytest.raises(ParamcountError, match="meets"):
        ops.given("x", "tokens", 4) + ops.given("x", "patches", 4)


def test_a_gate_is_one_number_per_row() -> None:
    with pytest.raises(ParamcountError, match="one number per row"):
        ops.scale(ops.given("x", "tokens", 4), ops.given("g", "tokens", 2))


def test_a_run_of_no_layers_leaves_no_rows() -> None:
    x = ops.given("x", "tokens", 4)
    out = ops.layers(x, "h.{layer}.", [("dense", 0), ("moe", 2)], lambda kind, x: ops.linear(x, kind, "mlp", 4))
    assert weight_names(out) == ["h.{layer}.moe.weight"]


def test_kinds_that_recur_are_written_once_and_know_their_indices() -> None:
    x = ops.given("x", "tokens", 4)
    kinds = [("a", 1), ("b", 1), ("b", 1), ("a", 2)]
    out = ops.layers(x, "h.{layer}.", kinds, lambda kind, x: ops.linear(x, kind, "mlp", 4), first=10)
    repeats = {held.name: held.repeats[0] for held in ops.list_rows(out)}
    assert repeats["h.{layer}.a.weight"].indices == (10, 13, 14)
    assert repeats["h.{layer}.b.weight"].runs == ((11, 2),)


def test_a_layer_must_give_back_the_shape_it_takes() -> None:
    with pytest.raises(ParamcountError, match="meets"):
        ops.layers(ops.given("x", "tokens", 4), "h.", [("layer", 2)], lambda kind, x: ops.linear(x, "w", "mlp", 5))


def test_a_body_that_uses_outside_data_without_reads_is_an_error() -> None:
    x = ops.given("x", "tokens", 4)
    memory = ops.linear(ops.given("y", "rows", 4), "memory", "other", 4)
    out = ops.layers(x, "h.", [("layer", 2)], lambda kind, x: Data("attend", (x, memory), x.shape))
    with pytest.raises(ParamcountError, match="from outside"):
        ops.list_rows(out)
    read = ops.layers(x, "h.", [("layer", 2)], lambda kind, x, m: Data("attend", (x, m), x.shape), reads=(memory,))
    assert weight_names(read) == ["memory.weight"]


def test_what_layers_hand_on_must_keep_its_shape() -> None:
    x = ops.given("x", "tokens", 4)
    out = ops.layers(
        x, "h.", [("layer", 2)], lambda kind, x, k: (x, ops.linear(x, "k", "qkv.k", (2, 3))), carry=((2, 3),)
    )
    assert ops.sum_parameters(out) == 2 * 24
    with pytest.raises(ParamcountError, match="meets"):
        ops.layers(x, "h.", [("layer", 2)], lambda kind, x, k: (x, ops.linear(x, "k", "qkv.k", 6)), carry=((2, 3),))


def test_a_weight_that_all_experts_share_is_counted_once() -> None:
    x = ops.given("x", "tokens", 4)
    scores = ops.linear(x, "gate", "router", 8)
    out = ops.experts(x, scores, "e.", 8, 2, expert_under_a_norm, stored="stacked")
    assert [(record.name, record.shape) for record in ops.list_rows(out)][1:] == [
        ("e.w.weight", (8, 4, 4)), ("e.norm.weight", (4,)),
    ]  # fmt: skip
    assert ops.sum_parameters(out) == 4 * 8 + 8 * 4 * 4 + 4
    assert ops.sum_parameters(out, active=True) == 4 * 8 + 2 * 4 * 4 + 4


def expert_under_a_norm(x: Data) -> Data:
    return ops.share(ops.rms_norm(ops.linear(x, "w", "experts", 4), "norm", 1e-6))


def test_a_flow_may_be_deeper_than_calls_can_be_nested() -> None:
    x = ops.given("tokens", "tokens", 8)
    for _ in range(2 * getrecursionlimit()):
        x = x + x
    assert len(ops.list_steps(x)) == 1 + 2 * getrecursionlimit()  # the input and every sum


def test_a_declaration_of_hundreds_of_steps_in_a_row_is_counted_and_traced() -> None:
    # MiniCPM-V 4.6: each further merge adds the same number of parameters
    totals = [pc.count({"model_type": "minicpmv4_6"}, set={"n_merges": n}).total for n in (1, 2, 3, 400)]
    assert totals[3] - totals[1] == 398 * (totals[2] - totals[1])
    assert pc.trace({"model_type": "minicpmv4_6"}, set={"n_merges": 400}).steps
