"""The guide to a new column, followed to the letter in a copy of the package."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.sources import ROOT

GUIDE = (ROOT / "paramcount/docs/data.md").read_text(encoding="utf-8").partition("## Add a column")[2]


def run_line(folder: Path, line: str) -> str:
    command = shlex.split(line)
    command = command[1:] if command[0] == "python" else ["-m", *command]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PARAMCOUNT_CACHE": ""}
    done = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_column_of_one_line_is_in_every_table(tmp_path: Path) -> None:
    unused = shutil.ignore_patterns("__pycache__", "node_modules", "images", "data", "golden")
    for name in ("paramcount", "tests", "configs/gpt"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=unused)
    (declaration,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    columns = tmp_path / "paramcount/zoo/columns.py"
    text = columns.read_text(encoding="utf-8")
    place = text.index('    declare_fact("name"')
    columns.write_text(f"{text[:place]}    {declaration.rstrip()},\n{text[place:]}", encoding="utf-8")
    lines = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)[0].splitlines()
    assert lines.pop() == "python -m tests.refresh_docs"  # which runs all examples; what it writes:
    code = "from paramcount.database.tables import *; print(*find_table('models').fields, sep='\\n')"
    (declared,) = (
        row for row in run_line(tmp_path, shlex.join(["python", "-c", code])).splitlines() if "n_positions" in row
    )
    for word in ("integer", "positions", "Rows of the learned position embedding."):
        assert f"'{word}'" in declared
    for line in lines:
        run_line(tmp_path, line)
    header, *_ = (tmp_path / "configs/zoo.csv").read_text(encoding="utf-8").splitlines()
    assert "n_positions" in header.split(",")
    for command in ("compare", "list", "scan"):
        schema = json.loads((tmp_path / f"paramcount/schemas/{command}.json").read_text(encoding="utf-8"))
        row = schema["properties"]["models"]["items"]["properties"]
        assert row["n_positions"] == {"type": ["integer", "null"]}
    assert "gpt2-small,1024" in run_line(tmp_path, "paramcount list gpt2 --columns n_positions --csv").splitlines()
    models = json.loads(run_line(tmp_path, "paramcount compare gpt2-small --json"))["models"]
    assert [model["n_positions"] for model in models] == [1024]
