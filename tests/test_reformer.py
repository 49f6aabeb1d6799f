"""Reformer's layers, whose arithmetic is worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paramcount as pc
from paramcount.flow import AxialLookup, hide, put_itself_last, scores, softmax, weighted_sum
from paramcount.flow.masks import Causal
from tests.steps import Leaf, run_steps
from tests.test_images import compute

SMALL: dict[str, Any] = {
    "model_type": "reformer",
    "vocab_size": 96,
    "hidden_size": 32,
    "attention_head_size": 6,
    "num_attention_heads": 3,
    "feed_forward_size": 40,
    "attn_layers": ["local", "lsh"],
    "axial_pos_shape": [4, 6],
    "axial_pos_embds_dim": [20, 12],
    "max_position_embeddings": 24,
}
DECODER = {"architectures": ["ReformerModelWithLMHead"], "is_decoder": True}


def test_a_layer_has_one_matrix_for_queries_and_keys_if_it_hashes_them() -> None:
    count = pc.count(SMALL)
    ff, norms = 2 * 32 * 40 + 40 + 32, 2 * 2 * 32
    layers = {"local": 4 * 32 * 18 + ff + norms, "lsh": 3 * 32 * 18 + ff + norms}
    embeddings = 96 * 32 + 4 * 20 + 6 * 12
    assert count.total == embeddings + sum(layers.values()) + 2 * 64 + 64 * 96
    assert count.unreachable == {"lm_head.bias": 96}
    assert pc.count({**SMALL, **DECODER}).total == count.total


def test_axial_positions_are_rows_and_columns_instead_of_one_row_each() -> None:
    """arXiv:2001.04451, section 4: axial positions; 64 rows and 64 columns instead of 4,096 rows."""
    axial = pc.count({"model_type": "reformer", "axial_pos_embds": True})
    learned = pc.count({"model_type": "reformer", "axial_pos_embds": False})
    assert axial.components["position"] == 64 * 64 + 64 * 192
    assert learned.components["position"] == 4096 * 256


def test_a_token_sees_itself_only_if_it_sees_no_other() -> None:
    q, v = np.zeros((3, 1, 1)), [[[1.0]], [[3.0]], [[9.0]]]
    s = put_itself_last(scores(Leaf(q), Leaf(q)))
    causal = run_steps(weighted_sum(softmax(hide(s, Causal())), Leaf(v)), 3)
    assert causal.ravel().tolist() == pytest.approx([1, 1, 2])  # the first sees no other
    both = run_steps(weighted_sum(softmax(s), Leaf(v)), 3)
    assert both.ravel().tolist() == pytest.approx([6, 5, 2])


def test_positions_are_rows_and_columns_of_a_grid() -> None:
    """A grid of 2 × 3: the fifth position is in the second row and the second column."""
    rows = compute(AxialLookup("rows", 3), np.zeros(5), weights=([[[7.0]], [[8.0]]],))
    columns = compute(AxialLookup("columns", 3), np.zeros(5), weights=([[[1.0], [2.0], [3.0]]],))
    assert rows.ravel().tolist() == [7, 7, 7, 8, 8]
    assert columns.ravel().tolist() == [1, 2, 3, 1, 2]


def test_layers_of_one_kind_may_be_more_than_are_named() -> None:
    one, three = (pc.count({**SMALL, "attn_layers": ["lsh"], "num_hidden_layers": n}).total for n in (1, 3))
    assert three - one == 2 * (3 * 32 * 18 + 2 * 32 * 40 + 40 + 32 + 2 * 2 * 32)
