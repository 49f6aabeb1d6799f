"""The README is true: its commands print what it says, and its Python runs."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from paramcount import zoo
from paramcount.architectures import ARCHITECTURES
from paramcount.cli import main
from tests.headers import write_file
from tests.test_checkpoint_alone import MASKS, of_reference

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
COMMANDS = [run for block in CONSOLE for run in re.split(r"^\$ ", block, flags=re.MULTILINE) if run]
PYTHON = re.findall(r"```python\n(>>> .*?)```", README, re.DOTALL)


@pytest.fixture(autouse=True)
def _beside_the_config_json_that_is_printed_and_a_gpt2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(re.findall(r"```json\n(.*?)```", README, re.DOTALL)[0], encoding="utf-8")
    (folder / "claims.csv").write_text(re.findall(r"```csv\n(.*?)```", README, re.DOTALL)[0], encoding="utf-8")
    write_file(folder / "model.safetensors", of_reference("gpt2-small", "F32") | MASKS)
    monkeypatch.chdir(folder)


@pytest.mark.parametrize("run", COMMANDS, ids=lambda run: run.partition("\n")[0])
def test_a_command_prints_what_the_readme_says(run: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    command, _, expected = run.partition("\n")
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(shlex.split(command)[1:])
    captured = capsys.readouterr()
    assert captured.out + captured.err == expected


def test_the_table_of_published_figures_is_what_the_tool_prints(capsys: pytest.CaptureFixture[str]) -> None:
    line = re.search(r"`(paramcount why [^`]* --markdown)`", README)
    assert line is not None
    with pytest.raises(SystemExit):
        main(line[1].split()[1:])
    table = capsys.readouterr().out
    assert len(table.splitlines()) == 2 + 10
    assert table in README


@pytest.mark.parametrize("example", PYTHON, ids=range(len(PYTHON)))
def test_a_python_example_runs(example: str) -> None:
    test = doctest.DocTestParser().get_doctest(example, {}, "README.md", None, None)
    assert doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(test).failed == 0


def test_the_readme_has_its_examples_and_says_how_many_models_there_are() -> None:
    models = sum(not zoo.entry(id).estimate for id in zoo.ids())
    assert (len(COMMANDS), len(PYTHON)) == (24, 3)
    assert f"{models} models of {len(zoo.families())} families" in README


def test_the_worked_example_of_an_architecture_is_its_file() -> None:
    declaration = (ROOT / "paramcount" / "architectures" / "seed_oss.py").read_text(encoding="utf-8")
    assert f"```python\n{declaration[declaration.index('class SeedOss') :]}```" in README


def test_the_readme_says_how_many_model_types_there_are() -> None:
    assert f"{len({name.partition('.')[0] for name in ARCHITECTURES})} model types" in README


def test_every_word_of_a_count_is_in_the_table_of_conventions() -> None:
    table = README[README.index("## What the words mean") : README.index("## How to add a model")]
    for word in ("total", "active", "embedding", "non_embedding", "lm_head", "qkv", "mlp", "router", "experts", "norm", "buffers", "mtp", "checkpoint"):
        assert f"`{word}`" in table


MESSAGES = ("error: ", "warning: ", "note: ")


def test_no_line_of_an_example_is_wider_than_80_columns() -> None:
    for block in CONSOLE:
        assert max(len(line) for line in block.splitlines() if not line.startswith(MESSAGES)) <= 80  # a message is one line
