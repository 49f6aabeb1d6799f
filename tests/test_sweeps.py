"""Sweeps: every combination of sizes, counted on arrays, equals the count of that combination alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.architectures import ARCHITECTURES
from paramcount.costs.caches import count_growth, count_states, list_cache_groups
from paramcount.costs.dtypes import parse_kv_dtype
from paramcount.huggingface.validity import find_limits
from paramcount.sweeping.axes import parse_axes, parse_expression
from paramcount.sweeping.columns import CACHES, COUNTS
from paramcount.sweeping.sweep import make_sweep
from paramcount.symbolic.compiled import evaluate_arrays
from paramcount.symbolic.trees import evaluate
from paramcount.zoo.what_if import get_size, list_paths
from tests.running import Runner
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
    rows: list[Any] = [row for chunk in chunks for row in pandas.DataFrame(chunk.columns).to_dict("records")]
    invalid: list[Any] = [row for frame in sweep.invalid() for row in frame.to_dict("records")]
    assert sum(chunk.combinations for chunk in chunks) == sweep.combinations == len(rows) + len(invalid)
    assert sum(chunk.invalid for chunk in chunks) == len(invalid)
    for row in rows[:: max(1, len(rows) // most)]:
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
    sizes = model.sizes
    return [path for path in list_paths(sizes) if type(get_size(sizes, path)) is int and find_limits(sizes, path)]


MODEL_TYPES = [name for name in ARCHITECTURES if "." not in name]


@pytest.mark.parametrize("name", keep_every(15, MODEL_TYPES))
@hypothesis.settings(max_examples=3, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_sampled_combination_equals_the_scalar_count(name: str, data: st.DataObject) -> None:
    model = load_default(name)
    if model is None:
        return  # some of its sizes have no default
    paths = data.draw(st.lists(st.sampled_from(list_numeric_paths(model)), min_size=1, max_size=3, unique=True))
    axes: dict[str, Any] = {}
    for path in paths:
        size = get_size(model.sizes, path)
        nearby = st.sampled_from(
            sorted({0, 1, 2, size - 1, size, size + 1, 2 * size, 4 * size, max(1, size // 2)} - {-1})
        )
        axes[path] = tuple(data.draw(st.lists(nearby, min_size=1, max_size=4, unique=True)))
    compare_with_scalars(model, axes, most=12)


@pytest.mark.parametrize(
    ("id", "settings", "n_valid"),
    [
        (
            "llama-3.1-8b",
            ["n_layers=1:9:4", "d_model=128,256", "d_ff=4*d_model", "heads=8:32:8", "n_kv_heads=heads//2"],
            18,
        ),
        ("gpt2-small", ["n_heads=1:12", "d_head=64,128", "d_model=n_heads*d_head", "n_layers=1:2"], 48),
        ("deepseek-v3", ["n_layers=1,61", "n_dense_layers=0,3", "num_experts_per_tok=1,8", "d_kv_lora=512,256"], 12),
        ("mixtral-8x7b", ["n_active_experts=1:9", "tie_word_embeddings=false,true", "n_layers=2"], 16),
        ("llama-3.2-11b-vision", ["vision.n_layers=31:33", "vision.d_ff=1280,5120", "d_ff=1024"], 6),
        ("gemma-3-1b", ["n_layers=26,25", "d_model=256,1152"], 2),
        ("t5-small", ["n_layers=0:2", "n_decoder_layers=0:2", "d_ff=64"], 9),
    ],
)
def test_sweeps_of_named_models_equal_the_scalar_counts(id: str, settings: list[str], n_valid: int) -> None:
    model, axes = pc.load(id), parse_axes(settings)
    sweep = make_sweep(model, axes, ("total", "kv_per_token"))
    rows: list[Any] = [row for frame in sweep for row in frame.to_dict("records")]
    for row in rows:
        found = count_row(model, {name: row[name] for name in (*sweep.axes, *sweep.expressions)})
        assert (row["total"], row["kv_per_token"]) == (found["total"], found["kv_per_token"])
    assert len(rows) == n_valid
    if not sweep.expressions:
        assert compare_with_scalars(model, axes) == n_valid


def list_rows(model: str, sizes: dict[str, Any], *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a sweep."""
    frames = pc.sweep(model, sizes, columns=columns or ("total",))
    return [tuple(row) for frame in frames for row in frame.itertuples(index=False)]


def test_the_first_size_varies_slowest_and_flags_slower_than_integers() -> None:
    sizes = {"n_layers": [1, 2], "tie_word_embeddings": [True, False], "d_ff": [8, 16]}
    found = [row[:3] for row in list_rows("gpt2-small", sizes)]
    assert found == [(tied, n, d) for tied in (True, False) for n in (1, 2) for d in (8, 16)]


def test_chunks_of_every_length_have_the_same_rows() -> None:
    axes = parse_axes(["n_layers=1:5", "d_model=768:776", "n_heads=1:3", "d_head=d_model//n_heads"])
    sweep = make_sweep(pc.load("gpt2-small"), axes)
    whole = pandas.concat(pandas.DataFrame(chunk.columns) for chunk in sweep.chunks())
    assert len(whole) == sum(d % n == 0 for d in range(768, 777) for n in (1, 2, 3)) * 5
    for size in (1, 2, 7, 27, 28, 134):
        chunks = list(sweep.chunks(size=size))
        assert max(chunk.combinations for chunk in chunks) <= size
        pandas.testing.assert_frame_equal(
            pandas.concat(pandas.DataFrame(chunk.columns) for chunk in chunks).reset_index(drop=True),
            whole.reset_index(drop=True),
        )


def test_totals_beyond_int64_are_python_ints() -> None:
    largest = 2**31
    (row,) = list_rows("llama-3.1-8b", {"n_layers": [largest], "d_ff": [largest]}, "total", "n_heads")
    assert row[2:] == (pc.count("llama-3.1-8b", set={"n_layers": largest, "d_ff": largest}).total, 32)
    assert row[2] > 2**63


def test_an_expression_beyond_int64_is_an_invalid_size() -> None:
    (frame,) = pc.sweep("gpt2-small", {"n_layers": [1, 2], "d_ff": f"n_layers * {10**12} * {10**12}"}).invalid()
    assert frame["d_ff"].tolist() == [10**24, 2 * 10**24]
    assert frame["reason"].tolist() == [
        f"d_ff = {value} (expected an integer of at most 2,147,483,648)" for value in frame["d_ff"]
    ]


def test_a_division_by_zero_makes_a_combination_invalid() -> None:
    result = pc.sweep("gpt2-small", {"n_layers": [11, 12, 13], "d_ff": "d_model // (n_layers - 12)"})
    (invalid,) = result.invalid()
    assert invalid["n_layers"].tolist() == [11, 12]
    assert invalid["reason"].tolist() == [
        "d_ff = -768 (expected a positive integer)",
        "d_ff = d_model // (n_layers - 12) divides by zero",
    ]
    assert [frame["d_ff"].tolist() for frame in result] == [[768]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("7-2-1", 4),
        ("-n//2", -4),
        ("-(n//2)", -3),
        ("2*n//4", 3),
        ("2*(n//4)", 2),
        ("100//n//2", 7),
        ("n - -n", 14),
    ],
)
def test_expressions_mean_what_they_mean_in_python(text: str, value: int) -> None:
    assert eval(text, {"n": 7}) == value  # noqa: S307
    tree = parse_expression(text, "x").tree
    assert evaluate(tree, {"n": 7}) == value
    found, _ = evaluate_arrays(tree, {"n": np.array([7, 7])})
    assert np.broadcast_to(found, 2).tolist() == [value, value]


def test_an_expression_has_the_numbers_and_names_of_a_filter() -> None:
    rows = list_rows("llama-3.1-8b", {"d_ff": "8k + 0*n_layers", "n_layers": "2*`KV heads`"}, "n_layers", "d_ff")
    assert rows == [(16, 8000)]  # in the order of evaluation


def test_each_panel_of_a_narrow_table_starts_with_the_sizes_that_vary(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "33")
    lines = run("sweep", "gpt2-small", "d_ff=n_layers", "n_layers=1,2", "n_positions=8,9").out.splitlines()
    headings = [line.split() for line in lines if line.startswith("layers")]
    assert headings == [
        ["layers", "n_positions", "d_ff"],
        ["layers", "n_positions", "total"],
        ["layers", "n_positions", "active"],
    ]


@pytest.mark.parametrize("extension", ["csv", "npy", "npz"])
def test_files_hold_the_rows_of_the_sweep(extension: str, run: Runner, tmp_path: Path) -> None:
    path, command = tmp_path / f"sizes.{extension}", ["sweep", "gpt2-small", "n_layers=1:3", "d_ff=8,9", "-o"]
    assert run(*command, str(path)).code == 0
    expected = [(n, d, count, count) for n, d, count in list_rows("gpt2-small", {"n_layers": "1:3", "d_ff": [8, 9]})]
    match extension:
        case "csv":
            assert list(pandas.read_csv(path).itertuples(index=False, name=None)) == expected
        case "npy":
            assert np.load(path).tolist() == expected
        case _:
            with np.load(path) as archive:
                assert list(zip(*(archive[name].tolist() for name in archive))) == expected


def test_a_parquet_file_holds_the_rows_of_the_sweep(run: Runner, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs the [export] extra")
    path = tmp_path / "sizes.parquet"
    assert run("sweep", "gpt2-small", "n_layers=1:3", "-o", str(path)).code == 0
    assert pandas.read_parquet(path)["total"].tolist() == [
        row[1] for row in list_rows("gpt2-small", {"n_layers": "1:3"})
    ]


def test_a_count_that_does_not_fit_a_file_leaves_the_old_file(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "sizes.npy"
    path.write_text("old")
    line = ["sweep", "llama-3.1-8b", "n_layers=2147483648", "d_ff=2147483648", "-o", str(path)]
    done = run(*line)
    assert done.code == 2
    problem = "total: a value of 2⁶³ or more does not fit the file (expected a .csv file, which has no limit)"
    assert done.err == f"error: {problem}\n"
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["sizes.npy"]


@pytest.mark.parametrize("format", ["--csv", "--json", "--markdown", "-o"])
def test_a_sweep_without_a_valid_combination_is_an_error_with_the_first_reason(
    run: Runner, tmp_path: Path, format: str
) -> None:
    path = tmp_path / "sizes.csv"
    done = run("sweep", "gpt2-small", "n_heads=7:8", "d_head=5", format, *([str(path)] if format == "-o" else []))
    assert (done.code, done.out, path.exists()) == (2, "", False)
    assert done.err.startswith("error: gpt2-small: none of the 2 combinations is valid; the first: ")
    listed = run("sweep", "gpt2-small", "n_heads=7:8", "d_head=5", "--invalid", "--csv")
    assert (listed.code, len(listed.out.splitlines())) == (0, 3)


def test_the_command_counts_what_it_skipped(run: Runner) -> None:
    done = run("sweep", "llama-3.1-8b", "n_kv_heads=1:8", "--csv", "--columns", "hidden_size,KV heads,total")
    assert done.out.splitlines()[:2] == ["n_kv_heads,d_model,total", "1,4096,7795380224"]
    assert done.err == "note: 4 of 8 combinations are invalid; --invalid lists them\n"
