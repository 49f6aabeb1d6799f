"""The core: data flows, operations hold weights, and every reading follows from that."""

from __future__ import annotations

from sys import getrecursionlimit

import pytest

import paramcount as pc
from paramcount import flow as ops
from paramcount.errors import ParamcountError
from paramcount.flow import Data
from paramcount.symbolic.polynomials import make_symbols


def weight_names(out: Data) -> list[str]:
    return [held.name for held in ops.list_rows(out)]


def test_an_input_width_is_read_off_the_data() -> None:
    out = ops.linear(ops.given("x", "tokens", 3, 4), "w", "mlp.up", 5, bias=True)
    assert [held.matrix for held in ops.list_rows(out)] == [(5, 12), (5,)]
    assert out.shape == ("tokens", 5)


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


def test_a_fused_matrix_is_counted_under_each_of_its_components() -> None:
    q, k = ops.fused(ops.given("x", "tokens", 6), "qk", {"qkv.q": (2, 4), "qkv.k": 4}, bias=True, transposed=True)
    assert (q.shape, k.shape) == (("tokens", 2, 4), ("tokens", 4))
    assert [held.matrix for held in ops.list_rows(q)] == [(6, 12), (12,)]
    assert [ops.sum_parameters(q, component) for component in ("qkv.q", "qkv.k", "qkv")] == [56, 28, 84]
    assert ops.sum_parameters(q) == 84


def test_a_weight_read_by_two_outputs_of_one_operation_is_counted_once() -> None:
    a, b = ops.fused(ops.given("x", "tokens", 6), "w", {"mlp.gate": 4, "mlp.up": 4})
    assert ops.sum_parameters(ops.join(a, b)) == 48


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


def test_a_second_use_of_a_block_is_tied_to_the_first() -> None:
    x = ops.given("x", "tokens", 4)
    once = ops.block(x, "a.", lambda x: ops.linear(x, "w", "mlp", 4))
    twice = ops.tie_weights(ops.block(once, "b.", lambda x: ops.linear(x, "w", "mlp", 4)), "a.")
    assert ops.sum_parameters(twice) == 16
    assert [held.tied_to for held in ops.list_rows(twice)] == [None, "a.w.weight"]


def test_layers_inside_a_second_use_are_tied_to_those_inside_the_first() -> None:
    def encode(x: Data) -> Data:
        return ops.layers(x, "h.{layer}.", [("layer", 3)], lambda kind, x: ops.linear(x, "w", "mlp", 4))

    once = ops.block(ops.given("x", "tokens", 4), "a.", encode)
    twice = ops.tie_weights(ops.block(once, "b.", encode), "a.")
    names = [(held.name, held.tied_to) for held in ops.list_rows(twice)]
    assert names == [("a.h.{layer}.w.weight", None), ("b.h.{layer}.w.weight", "a.h.{layer}.w.weight")]


def test_a_block_sets_the_part_of_all_its_weights() -> None:
    x = ops.given("x", "tokens", 4)
    out = ops.block(
        x, "tower.", lambda x: ops.layers(x, "h.", [("layer", 3)], lambda kind, x: ops.norm(x, "n")), part="vision"
    )
    assert [(held.name, held.part) for held in ops.list_rows(out)] == [("tower.h.n.weight", "vision")]


def test_active_experts_are_those_that_a_token_visits() -> None:
    x = ops.given("x", "tokens", 4)
    out = ops.experts(
        x, ops.linear(x, "gate", "router", 8), "e.{expert}.", 8, 2, lambda x: ops.linear(x, "w", "experts", 4)
    )
    assert (ops.sum_parameters(out), ops.sum_parameters(out, active=True)) == (32 + 8 * 16, 32 + 2 * 16)


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


def test_a_name_from_the_root_has_no_prefix_of_its_block() -> None:
    out = ops.block(ops.given("x", "tokens", 4), "a.", lambda x: ops.linear(x, "/elsewhere", "mlp", 4))
    assert weight_names(out) == ["elsewhere.weight"]


def test_operations_come_in_the_order_they_run() -> None:
    tokens = ops.given("tokens", "tokens")
    x = ops.lookup(tokens, "table", "embedding", 10, 4)
    out = ops.elementwise(x + two_linears(x), "gate", "g", "other", 1)
    labels = [data.operation.label for data, *_ in ops.list_steps(out)]
    assert labels == [
        "token ids",
        "lookup",
        "linear",
        "linear",
        "add",
        "gate",
    ]


def two_linears(x: Data) -> Data:
    return ops.linear(ops.linear(x, "a", "mlp.up", 6), "b", "mlp.down", 4)


def test_the_same_declaration_yields_its_formula() -> None:
    n, d = make_symbols("n_layers d_model")
    out = ops.layers(
        ops.given("x", "tokens", d),
        "h.",
        [("layer", n)],
        lambda kind, x: ops.linear(x, "w", "mlp", x.shape[-1], bias=True),
    )
    assert ops.sum_parameters(out) == n * (d * d + d)


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
