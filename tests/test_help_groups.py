"""The help of a command shows its own options first, then those that it shares with others, in 80 columns."""

from __future__ import annotations

from importlib import import_module

import click
import pytest

from paramcount.cli.commands import COMMANDS
from tests.running import Runner


@pytest.mark.parametrize("name", COMMANDS)
def test_own_options_come_first_and_shared_ones_under_common_options(
    name: str, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = run(name, "--help").out
    assert max(map(len, text.splitlines())) <= 80
    own, _, common = text.partition("\nCommon options:\n")
    found: click.Command = import_module(f"paramcount.cli.{COMMANDS[name][0]}").command
    shared: frozenset[str] = getattr(found, "common", frozenset())
    assert common or not shared or "Options:" in own
    for option in found.params:
        if isinstance(option, click.Option) and not option.hidden:
            shown = common if option.name in shared and common else own
            assert f"  {option.opts[0]}" in shown, option.opts


def test_help_of_memory_puts_what_every_command_shares_at_the_end(run: Runner) -> None:
    lines = run("memory", "--help").out.splitlines()
    assert lines.index("Options:") < lines.index("Common options:")
    common = lines[lines.index("Common options:") :]
    assert [line.split()[0] for line in common if line.startswith("  -")] == [
        "--set", "--strict", "--download", "--base", "--format", "-o,", "--color", "-h,",
    ]  # fmt: skip


@pytest.mark.parametrize("flag", ["--csv", "--markdown", "--json", "--latex"])
def test_short_formats_are_named_beside_the_long_option_and_still_work(run: Runner, flag: str) -> None:
    assert flag in run("show", "--help").out
    assert run("show", "gpt2-small", flag) == run("show", "gpt2-small", "--format", flag.removeprefix("--"))
