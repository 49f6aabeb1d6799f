"""The guide to a new architecture, followed to the letter in a copy of the package that does not know its example."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paramcount.zoo import list_ids, load_entry
from tests.oracle.settings import format_lines
from tests.sources import ROOT
from tests.type_files import find_file

NAME = "seed_oss"
GUIDE = (ROOT / "paramcount/docs/add-an-architecture.md").read_text(encoding="utf-8")
GENERATED = ("architectures/index.json", "sizes/settings.json", "sizes/defaults.json")


def run_line(folder: Path, line: str) -> str:
    """What a command of the guide prints in a folder."""
    command = shlex.split(line.replace("NAME", NAME))
    command = command[1:] if command[0] == "python" else ["-m", *command]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTEST_ADDOPTS": ""}
    for name in [name for name in environment if name.startswith("PYTEST_XDIST")]:
        del environment[name]
    done = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def list_lines() -> list[str]:
    """The commands of the steps, in order."""
    steps = GUIDE.partition("## Steps")[2]
    return [
        line.strip(" `")
        for line in re.findall(r"`(?:python -m|pytest|paramcount arch)[^`]*`|^ +python .*", steps, re.MULTILINE)
    ]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A checkout without the guide's example: its file, what is frozen about it, and its zoo entries."""
    unused = shutil.ignore_patterns("__pycache__", "node_modules", "images", Path(__file__).name)
    for name in ("paramcount", "configs", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=unused)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path in (ROOT / f"paramcount/architectures/{NAME}.py", find_file(NAME)):
        (tmp_path / path.relative_to(ROOT)).unlink()
    for id in list_ids():
        if load_entry(id).architecture == NAME:
            (next((tmp_path / "configs").rglob(f"{id}.yaml"))).unlink()
    for name in GENERATED:
        path = tmp_path / "paramcount" / name
        lines = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=drop_example)
        path.write_text(format_lines(lines), encoding="utf-8")
    return tmp_path


def drop_example(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value for key, value in pairs if not key.startswith((NAME, "SeedOss"))}


@pytest.mark.parametrize("name", [NAME])
def test_the_guide_leads_to_a_proven_architecture(name: str, copy: Path) -> None:
    (imports,) = re.findall(r"`(from paramcount\.declare import [^`]*)`", GUIDE)
    (declaration,) = re.findall(r"```python\n(class .*?)```", GUIDE, re.DOTALL)
    source = f'"""Seed-OSS."""\n\n{imports}\n\n\n{declaration}'
    (copy / f"paramcount/architectures/{name}.py").write_text(source, encoding="utf-8")
    assert name not in run_line(copy, "paramcount architectures")  # and no traceback before the first step
    lines = list_lines()
    assert [line.split()[-1] for line in (lines[0], lines[-1])] == ["tests.refresh_index", "auto"]
    printed = {line.split()[2]: run_line(copy, line) for line in lines[:-1]}
    assert "155,136" in printed["NAME"]
    assert printed["tests.oracle.differential"].startswith(f"{name}: 0 of 200 differ; ")
    assert re.search(r"^[1-9]\d* proofs hold, 0 do not$", printed["tests.oracle.prove"], re.MULTILINE)
    for file in GENERATED:
        assert (copy / "paramcount" / file).read_bytes() == (ROOT / "paramcount" / file).read_bytes()
    found, known = (json.loads((folder / find_file(name).relative_to(ROOT)).read_text()) for folder in (copy, ROOT))
    assert [found[kind] for kind in ("class", "total", "running")] == [
        known[kind] for kind in ("class", "total", "running")
    ]
    (copy / "config.json").write_text(json.dumps({"model_type": name}), encoding="utf-8")
    assert f"{known['total']:,} parameters" in run_line(copy, "paramcount ./config.json")
    assert " passed" in run_line(copy, "pytest -n 0 tests/test_model_types.py")  # of the last step's tests
