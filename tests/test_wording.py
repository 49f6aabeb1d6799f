"""Tables for papers: shares, names, units, captions; conditions and order of sweeps."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from paramcount.counting.components import COMPONENTS
from tests.running import Runner

SWEEP = ("sweep", "llama-3.1-8b", "n_layers=8:64:8", "d_model=2048,4096,5000")


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_shares_of_the_components_sum_to_the_whole(run: Runner) -> None:
    rows = read_csv(run("compare", "gpt2-small", "deepseek-v3", "llama-3.2-11b-vision", "--share", "--csv").out)
    counts = json.loads(run("compare", "gpt2-small", "deepseek-v3", "llama-3.2-11b-vision", "--json").out)["models"]
    for row, count in zip(rows, counts, strict=True):
        shares = {name: float(row[f"{name}_share"]) for name in COMPONENTS if f"{name}_share" in row}
        assert sum(shares.values()) == pytest.approx(100, abs=0.001)
        assert int(row["total"]) == count["total"]
        for name, share in shares.items():
            assert share == pytest.approx(100 * count[name] / count["total"], abs=0.0001)


def test_shares_compose_with_columns_and_order(run: Runner) -> None:
    line = ("compare", "gpt2-small", "deepseek-v3", "--share", "--columns", "layers,qkv", "--sort")
    up, down = (json.loads(run(*line, key, "--json").out)["models"] for key in ("qkv", "-qkv"))
    assert [list(model) for model in up] == [["id", "n_layers", "qkv_share"]] * 2
    assert [model["id"] for model in up] == ["deepseek-v3", "gpt2-small"] == [model["id"] for model in down[::-1]]


def test_a_share_below_the_last_digit_is_not_zero(run: Runner) -> None:
    (row,) = (line for line in run("compare", "deepseek-v3", "--share").out.splitlines() if "97.4%" in line)
    assert "<0.1%" in row


def test_a_latex_table_has_names_units_caption_and_label(run: Runner, tmp_path: Path) -> None:
    options = ("--names", "--units", "B", "--columns", "total,active", "--caption", "A & B", "--label", "tab:big")
    lines = run("compare", "deepseek-v3", "gpt2-small", *options, "--latex").out.splitlines()
    assert r"DeepSeek-V3 & 671B & 37.6B \\" in lines
    assert r"GPT-2 small & 0.124B & 0.124B \\" in lines
    assert r"\caption{A \& B}" in lines
    assert r"\label{tab:big}" in lines
    listed = run("list", "deepseek-v3", *options, "-o", str(tmp_path / "x.tex"))
    assert listed.code == 0
    assert r"DeepSeek-V3 & 671B & 37.6B \\" in (tmp_path / "x.tex").read_text(encoding="utf-8")


def test_a_sweep_is_sorted_and_equal_rows_keep_their_order(run: Runner) -> None:
    line = ("sweep", "llama-3.1-8b", "n_layers=8,32,16", "d_ff=1024,2048", "--csv", "--columns", "total", "--sort")
    rows = read_csv(run(*line, "-layers").out)
    assert [(row["n_layers"], row["d_ff"]) for row in rows] == [
        (layers, size) for layers in ("32", "16", "8") for size in ("1024", "2048")
    ]
    rows = read_csv(run(*line, "kv_per_token").out)
    assert list(rows[0]) == ["n_layers", "d_ff", "total"]
    assert [row["n_layers"] for row in rows] == ["8", "8", "16", "16", "32", "32"]


def test_a_sweep_without_matching_rows_says_so(run: Runner) -> None:
    assert "no valid combination meets --where" in run(*SWEEP, "--where", "total < 1").out
    assert json.loads(run(*SWEEP, "--where", "total < 1", "--json").out)["excluded"] == 16
