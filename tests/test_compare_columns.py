"""What `compare` shows: the totals, the components that the models have, then sizes as far as there is space."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import paramcount as pc
from tests.running import Runner

MODELS = ("llama-3.1-8b", "qwen3-8b", "deepseek-v3", "gpt2-small")
COMPONENTS = [
    "embedding", "position", "qkv", "out proj.", "mlp", "router", "experts", "shared", "norm", "lm_head",
]  # fmt: skip


@pytest.mark.parametrize(("width", "n_panels"), [(60, 4), (80, 3), (200, 1)])
def test_a_terminal_shows_the_totals_and_all_components_and_then_sizes_as_far_as_there_is_space(
    width: int, n_panels: int, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("compare", *MODELS).out.splitlines()
    panels = [re.split(r"  +", line.strip()) for line in lines if line.startswith("model  ")]
    headings = [heading for panel in panels for heading in panel[1:]]
    assert len(panels) == n_panels
    assert headings[:12] == ["total", "active", *COMPONENTS]
    assert headings[12] == "layers"
    assert max(map(len, lines)) <= width
    note = " ".join(lines[lines.index(next(line for line in lines if line.startswith("note: "))) :])
    assert "not enough space for" in note
    assert "choose columns with --columns" in note


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_column_of_a_panel_has_the_same_numbers_as_the_table_in_one_piece(
    width: int, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_cells(width: int) -> dict[str, list[str]]:
        monkeypatch.setenv("COLUMNS", str(width))
        rows = [re.split(r"  +", line.strip()) for line in run("compare", *MODELS).out.splitlines() if "  " in line]
        starts = [i for i, row in enumerate(rows) if row[0] == "model"]
        panels = [rows[start : start + 2 + len(MODELS)] for start in starts]
        return {panel[0][i]: [row[i] for row in panel[2:]] for panel in panels for i in range(len(panel[0]))}

    whole = read_cells(1000)
    cells = read_cells(width)
    assert cells == {heading: whole[heading] for heading in cells}


@pytest.mark.parametrize(("format", "separator"), [("--markdown", " | "), ("--latex", " & ")])
def test_markdown_and_latex_begin_with_the_totals_and_the_components(format: str, separator: str, run: Runner) -> None:
    (heading,) = [
        line for line in run("compare", *MODELS, format).out.splitlines() if "d\\_model" in line or "d_model" in line
    ]
    cells = [cell.strip(" |\\").replace("\\_", "_") for cell in heading.split(separator)]
    assert cells[:14] == ["model", "total", "active", *COMPONENTS, "layers"]


def test_a_config_is_labelled_with_the_name_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Runner
) -> None:
    """Two folders of the same name are told apart by their paths."""
    for name, layers in (("a/small", 2), ("a/large", 3), ("b/small", 4)):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_layer": layers}))
    monkeypatch.chdir(tmp_path / "a/small")

    def list_ids(*names: str) -> list[str]:
        return [line.partition(",")[0] for line in run("compare", *names, "--csv").out.splitlines()[1:]]

    assert list_ids(".") == ["small"]
    assert list_ids("./config.json", "../large", "gpt2-small") == ["small", "large", "gpt2-small"]
    assert list_ids("../large", ".", "../../b/small") == ["large", "config.json", "../../b/small/config.json"]
    assert pc.compare([Path("../large"), {"model_type": "gpt2"}])["id"].tolist() == ["large", "unnamed"]
