"""Sweeps: every combination of sizes, counted on arrays, equals the count of that combination alone."""

from __future__ import annotations

import itertools
import random
from functools import cache
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import paramcount as pc
from paramcount import zoo
from paramcount.architectures import ARCHITECTURES
from paramcount.costs.caches import count_growth, count_states, list_cache_groups
from paramcount.costs.dtypes import parse_kv_dtype
from paramcount.sweeping.axes import parse_axes
from paramcount.sweeping.columns import CACHES, COUNTS
from paramcount.sweeping.expressions import parse_expression
from paramcount.sweeping.sweep import make_sweep
from paramcount.sweeping.validity import find_limits
from paramcount.zoo.what_if import get_size, list_paths
from tests.structures import keep_every

BF16 = parse_kv_dtype("bf16")
CHECKED = (*COUNTS, "qkv", "mlp", "experts", "mixer", "norm", "lm_head", "vision", "projector", *CACHES)


def count_row(model: zoo.Model, row: dict[str, Any]) -> dict[str, int]:
    """The columns of one combination, each from the scalar functions."""
    changed = pc.what_if(model, **row)
    count = pc.count(changed)
    groups = list_cache_groups(changed)
    values = {name: getattr(count, name) for name in COUNTS}
    values |= {name: count.components[name] for name in CHECKED if name in count.components}
    return values | {"kv_per_token": count_growth(groups, BF16), "state": count_states(groups, BF16)}


def compare_with_scalars(model: zoo.Model, axes: dict[str, Any], most: int = 40) -> int:
    """Check some valid and all invalid combinations of a sweep; the number of valid ones."""
    sweep = make_sweep(model, axes, CHECKED)
    chunks = list(sweep.chunks(size=7))
    rows = [dict(zip(chunk.columns, row)) for chunk in chunks for row in zip(*(a.tolist() for a in chunk.columns.values()))]
    invalid = [row for frame in sweep.invalid() for row in frame.to_dict("records")]
    assert sum(chunk.combinations for chunk in chunks) == sweep.combinations == len(rows) + len(invalid)
    assert sum(chunk.invalid for chunk in chunks) == len(invalid)
    for row in random.Random(0).sample(rows, min(most, len(rows))):
        sizes = {name: row[name] for name in sweep.axes}
        assert {name: row[name] for name in CHECKED} == count_row(model, sizes), sizes
    for row in invalid[:most]:
        with pytest.raises(pc.ParamcountError):
            count_row(model, {name: row[name] for name in sweep.axes})
        assert row["reason"]
    return len(rows)


@cache
def load_default(name: str) -> zoo.Model | None:
    """The default config of a model type; None if the architecture cannot be named so."""
    try:
        return pc.load({"model_type": name})
    except pc.ParamcountError:
        return None


def list_numeric_paths(model: zoo.Model) -> list[str]:
    return [
        path for path in list_paths(model.sizes) if type(get_size(model.sizes, path)) is int and find_limits(model.sizes, path)
    ]


MODEL_TYPES = [name for name in ARCHITECTURES if load_default(name)]


@pytest.mark.parametrize("name", keep_every(6, MODEL_TYPES))
@hypothesis.settings(max_examples=3, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_sampled_combination_equals_the_scalar_count(name: str, data: st.DataObject) -> None:
    model = load_default(name)
    assert model
    paths = data.draw(st.lists(st.sampled_from(list_numeric_paths(model)), min_size=1, max_size=3, unique=True))
    axes: dict[str, Any] = {}
    for path in paths:
        size = get_size(model.sizes, path)
        nearby = st.sampled_from(sorted({0, 1, 2, size - 1, size, size + 1, 2 * size, 4 * size, max(1, size // 2)} - {-1}))
        axes[path] = tuple(data.draw(st.lists(nearby, min_size=1, max_size=4, unique=True)))
    compare_with_scalars(model, axes, most=12)


@pytest.mark.parametrize(
    ("id", "settings", "n_valid"),
    [
        ("llama-3.1-8b", ["n_layers=1:9:4", "d_model=128,256", "d_ff=4*d_model", "heads=8:32:8", "n_kv_heads=heads//2"], 18),
        ("gpt2-small", ["n_heads=1:12", "d_head=64,128", "d_model=n_heads*d_head", "n_layers=0:2"], 48),
        ("deepseek-v3", ["n_layers=1,61", "n_dense_layers=0,3", "num_experts_per_tok=1,8", "d_kv_lora=512,256"], 12),
        ("mixtral-8x7b", ["n_active_experts=1:9", "tie_word_embeddings=false,true", "n_layers=2"], 16),
        ("llama-3.2-11b-vision", ["vision.n_layers=31:33", "vision.d_ff=1280,5120", "d_ff=1024"], 6),
        ("gemma-3-1b", ["n_layers=26,25", "d_model=256,1152"], 2),
        ("t5-small", ["n_layers=2:4", "n_decoder_layers=2:4", "d_ff=64"], 9),
    ],
)
def test_sweeps_of_named_models_equal_the_scalar_counts(id: str, settings: list[str], n_valid: int) -> None:
    model, axes = pc.load(id), parse_axes(settings)
    sweep = make_sweep(model, axes, ("total", "kv_per_token"))
    rows = [row for frame in sweep for row in frame.to_dict("records")]
    for row in rows:
        found = count_row(model, {name: row[name] for name in (*sweep.axes, *sweep.expressions)})
        assert (row["total"], row["kv_per_token"]) == (found["total"], found["kv_per_token"])
    assert len(rows) == n_valid
    if not sweep.expressions:
        assert compare_with_scalars(model, axes) == n_valid
