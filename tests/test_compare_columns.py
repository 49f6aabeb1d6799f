"""What `compare` shows: the totals, the components that the models have, then sizes as far as there is space."""

from __future__ import annotations

import re

import pytest

from tests.running import Runner

MODELS = ("llama-3.1-8b", "qwen3-8b", "deepseek-v3", "gpt2-small")
COMPONENTS = [
    "embedding", "position", "qkv", "out proj.", "mlp", "router", "experts", "shared", "norm", "lm_head",
]  # fmt: skip


@pytest.mark.parametrize(
    ("width", "headings"),
    [
        (60, ["model", "total", "active"]),
        (80, ["model", "total", "active", "mlp", "experts"]),
        (200, ["model", "total", "active", *COMPONENTS, "layers", "d_model"]),
    ],
)
def test_a_terminal_leaves_out_sizes_first_and_then_the_smallest_components(
    width: int, headings: list[str], run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("compare", *MODELS).out.splitlines()
    assert re.split(r"  +", lines[0].strip()) == headings
    assert max(map(len, lines)) <= width
    note = " ".join(lines[6:])
    assert "not enough space for" in note
    assert "choose columns with --columns" in note


@pytest.mark.parametrize(("format", "separator"), [("--markdown", " | "), ("--latex", " & ")])
def test_markdown_and_latex_begin_with_the_totals_and_the_components(format: str, separator: str, run: Runner) -> None:
    (heading,) = [
        line for line in run("compare", *MODELS, format).out.splitlines() if "d\\_model" in line or "d_model" in line
    ]
    cells = [cell.strip(" |\\").replace("\\_", "_") for cell in heading.split(separator)]
    assert cells[:14] == ["model", "total", "active", *COMPONENTS, "layers"]


def test_components_that_no_model_has_are_not_shown(run: Runner) -> None:
    out = run("compare", "llama-3.1-8b", "qwen3-8b", "--markdown").out
    assert "| experts |" not in out
    assert "| vision |" not in out
