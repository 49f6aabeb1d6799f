"""The tables of paramcount/docs/accuracy.md that compare memory with other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc

DATA = Path(__file__).parent / "data"
GUIDE = Path(pc.__file__).parent / "docs" / "accuracy.md"
# {row: zoo id, or name of a config in tests/data/config_truth}
MODELS = {
    "Llama 3.1 8B": "llama-3.1-8b",
    "Gemma 3 27B": "gemma-3-27b-it",
    "Mixtral 8x7B": "mixtral-8x7b",
    "DeepSeek-V3": "deepseek-v3",
    "gpt-oss-20b": "gpt-oss-20b",
    "Qwen3-Next 80B-A3B": "qwen3-next-80b-a3b",
    "Jamba v0.1": "Jamba-v0.1",
    "T5 small": "t5-small",
}
N = 32_768
# Values in the cache of one sequence of N tokens: by hand, from the published sizes
CACHED = {
    "Llama 3.1 8B": 32 * N * 2 * 8 * 128,
    "Gemma 3 27B": (10 * N + 52 * 1023) * 2 * 16 * 128,
    "Mixtral 8x7B": 32 * N * 2 * 8 * 128,
    "DeepSeek-V3": 61 * N * (512 + 64),
    "gpt-oss-20b": 12 * (N + 127) * 2 * 8 * 64,
    # 32 value heads with states of 128 × 128, and 3 earlier inputs of 2 × 16 × 128 + 32 × 128 channels
    "Qwen3-Next 80B-A3B": 12 * N * 2 * 2 * 256 + 36 * (32 * 128 * 128 + 3 * 8192),
    # 8,192 channels with 16 states and 3 earlier inputs
    "Jamba v0.1": 4 * N * 2 * 8 * 128 + 28 * 8192 * (16 + 3),
    "T5 small": 2 * 6 * N * 2 * 8 * 64,  # itself and the encoder's output
}


def read_table(heading: str) -> dict[str, list[str]]:
    """{model: cells, paramcount's first} of the table whose first heading this is."""
    lines = iter(GUIDE.read_text(encoding="utf-8").splitlines())
    next(line for line in lines if line.startswith(f"| {heading} |"))
    next(lines)
    rows = {}
    for line in lines:
        if not line.startswith("|"):
            break
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows[name] = cells
    return rows


def find_model(name: str) -> Any:
    path = DATA / "config_truth" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["config"] if path.exists() else name


@pytest.mark.parametrize("row", MODELS)
def test_the_figures_of_paramcount_are_those_that_it_computes(row: str) -> None:
    memory = pc.memory(find_model(MODELS[row]), dtype="bf16", context=N)
    assert read_table("weights")[row][0] == f"**{memory.weights_bytes:,}**"
    assert read_table("cache")[row][0] == f"**{memory.kv_cache_bytes + memory.state_bytes:,}**"
    assert memory.kv_cache_bytes + memory.state_bytes == 2 * CACHED[row]
    assert memory.weights_bytes == 2 * pc.count(find_model(MODELS[row])).total


@pytest.mark.parametrize("heading", ["weights", "cache"])
def test_figures_in_bold_are_the_right_ones(heading: str) -> None:
    table = read_table(heading)
    assert list(table) == list(MODELS)
    for right, *others in table.values():
        assert [cell == right for cell in others] == [cell.startswith("**") for cell in others]
        assert right.strip("*") not in others


@pytest.mark.parametrize("id", ["deepseek-v3", "gpt-oss-20b"])
def test_the_bytes_as_released_are_those_that_it_computes(id: str) -> None:
    assert f"{pc.memory(id).weights_bytes:,}" in GUIDE.read_text(encoding="utf-8")
