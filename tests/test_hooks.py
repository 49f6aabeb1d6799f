"""The pre-commit hooks and the GitHub Action that check entries and tables in other repositories."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from paramcount.zoo.entries import read_entry
from paramcount.zoo.writing import format_entry
from tests.running import Runner

ROOT = Path(__file__).resolve().parent.parent
HOOKS = ROOT / ".pre-commit-hooks.yaml"
ACTION = ROOT / ".github" / "action.yml"
OWN = {"id": "my-model", "name": "My model", "family": "own", "hf": None, "aliases": ()}
ENTRY = format_entry(read_entry(ROOT / "configs" / "gpt" / "gpt2-small.yaml").model_copy(update=OWN))
TABLE = "model,layers\ngpt2-small,12\n"
CONFIG = '{"model_type": "gpt2"}'
FILES = {  # {command: (path, right content, wrong content, the variables of its step, the arguments of its hook)}
    "validate": (
        "configs/own/my-model.yaml", ENTRY, ENTRY.replace("total: 124439808", "total: 124439809"), "ENTRIES", (),
    ),
    "audit": ("claims.csv", TABLE, TABLE.replace("12", "13"), "TABLES", ()),
    "show": ("config.json", CONFIG, CONFIG.replace("}", ', "n_layer": 13}'), "CONFIG", ("--expect", "124M")),
}  # fmt: skip
pytestmark = pytest.mark.usefixtures("_in_an_empty_directory")


def write(path: str, content: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(content, encoding="utf-8")


@pytest.mark.parametrize("command", FILES)
def test_a_hook_takes_its_files_and_fails_on_a_wrong_one(command: str, run: Runner) -> None:
    hooks = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))
    (hook,) = (hook for hook in hooks if hook["entry"] == f"paramcount {command}")
    path, right, wrong, _, options = FILES[command]
    assert re.search(hook["files"], path)
    assert not re.search(hook["files"], "src/other.yaml")
    assert not re.search(hook["files"], "tsconfig.json")
    for content, code in ((right, 0), (wrong, 1)):
        write(path, content)
        assert run(command, *options, path).code == code


@pytest.mark.parametrize("command", FILES)
def test_a_step_of_the_action_fails_on_a_wrong_file(command: str) -> None:
    path, right, wrong, variable, _ = FILES[command]
    figures = {"EXPECT": "124M active=124439808"} if command == "show" else {}
    for content, code in ((right, 0), (wrong, 1)):
        write(path, content)
        done = run_step(command, **{variable: path}, **figures)
        assert done.returncode == code, done.stderr


def run_step(command: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """A step of the action, with its inputs, which are all of its variables."""
    steps = yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]
    (step,) = [step for step in steps if step.get("name") == f"paramcount {command}"]
    assert set(step["env"]) == set(variables)
    script = f'paramcount() {{ "$PYTHON" -m paramcount "$@"; }}\n{step["run"]}'
    environment = os.environ | {"PYTHON": sys.executable, **variables}
    return subprocess.run(["bash", "-e", "-c", script], env=environment, capture_output=True, check=False)  # noqa: S607
