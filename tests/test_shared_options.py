"""Options that commands share, and where files go that nobody has named."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click
import pytest

import paramcount as pc
from paramcount.cli.commands import COMMANDS
from tests.running import Runner
from tests.test_config_files import QWEN, write_config

WITHOUT_MODEL = {
    "add", "architectures", "audit", "docs", "export", "help", "list", "scan", "schema", "sql", "validate",
}  # fmt: skip
WITHOUT_TABLE = {"add", "help", "docs", "draw", "explore", "export", "map", "report", "schema"}
pytestmark = pytest.mark.usefixtures("_in_an_empty_directory")


def list_parameters(name: str) -> dict[str, click.Parameter]:
    found: click.Command = import_module(f"paramcount.cli.{COMMANDS[name][0]}").command
    return {spelling: parameter for parameter in found.params for spelling in (*parameter.opts, str(parameter.metavar))}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_that_take_models_and_print_tables_share_their_options(name: str) -> None:
    found = set(list_parameters(name))
    assert ("--set" in found) == (name not in WITHOUT_MODEL)
    assert name in WITHOUT_MODEL or {"--set", "--download", "-o", "--output"} <= found
    formats = {"--format", "--csv", "--json", "--markdown", "--latex", "-o", "--output", "--color"}
    assert (formats <= found) == (name not in WITHOUT_TABLE)


def test_verify_fetches_a_config_that_is_nowhere_else(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(repo: str, revision: str = "main") -> Path:
        raise pc.ParamcountError("is asked for", where=f"{repo} at {revision}")

    monkeypatch.setattr("paramcount.huggingface.locate.download_config", download)
    done = run("verify", "somebody/nothing", "--download")
    assert (done.code, done.out) == (2, "")
    assert "somebody/nothing at main is asked for" in done.err


# ---- help


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_of_a_command_is_its_help_option(name: str, run: Runner) -> None:
    assert run("help", *name.split()) == run(*name.split(), "--help")


# ---- files that nobody has named


@pytest.mark.parametrize(
    ("command", "ending", "beginning"),
    [("report", ".html", "<!doctype html>"), ("draw", ".svg", "<svg"), ("map", ".svg", "<svg")],
)
def test_without_output_a_file_is_named_after_the_model(command: str, ending: str, beginning: str, run: Runner) -> None:
    if command == "report":
        pytest.importorskip("jinja2")
    assert run(command, "gpt2-small") == (0, "", f"note: wrote gpt2-small{ending}\n")
    assert Path(f"gpt2-small{ending}").read_text(encoding="utf-8").startswith(beginning)
    Path("out").mkdir()
    for folder in ("out", "out/"):
        assert run(command, "gpt2-small", "-o", folder) == (0, "", f"note: wrote out/gpt2-small{ending}\n")
    assert Path(f"out/gpt2-small{ending}").read_bytes() == Path(f"gpt2-small{ending}").read_bytes()
    write_config("models/my qwen #1/config.json", QWEN | {"num_hidden_layers": 1})
    assert run(command, "./models/my qwen #1").err.endswith(f"note: wrote my-qwen-1{ending}\n")


def test_a_report_on_several_models_is_called_report_and_opens_in_the_browser(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jinja2")
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert run("report", "gpt2-small", "gpt2-medium", "--open") == (0, "", "note: wrote report.html\n")
    assert opened == [Path("report.html").absolute().as_uri()]
