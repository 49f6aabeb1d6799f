"""The bar of what takes long: on a terminal alone, and only where it does."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

import paramcount as pc
from paramcount.cli import progress
from paramcount.database import store
from paramcount.database.query import run_query
from tests.headers import load_saved, write_shards
from tests.running import Runner

NAME = "qwen2_moe"
COMMANDS = {"verify": ("verify", "./config.json"), "alone": (), "why": ("why", "./config.json")}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model in five files, in the current directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(load_saved(NAME).config), encoding="utf-8")
    return f"./{write_shards(tmp_path, load_saved(NAME).tensors, 5).name}"


def record_progress(monkeypatch: pytest.MonkeyPatch, step: float) -> str:
    """The output on a terminal while four files are read, each in `step` seconds."""
    terminal, ticks = Terminal(), count()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "monotonic", lambda: next(ticks) * step)
    with progress.progress_callback() as watch:
        assert watch is not None
        for done in range(5):
            watch(done, 4)
    return terminal.getvalue()


def test_a_read_of_more_than_a_second_has_a_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    text = record_progress(monkeypatch, 0.6)
    assert "headers" in text
    assert [part for part in ("25%", "50%", "75%", "100%") if part in text] == ["25%", "50%", "75%", "100%"]


def test_a_read_of_less_than_a_second_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert record_progress(monkeypatch, 0.1) == ""


def test_without_a_terminal_progress_is_not_tracked(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.progress_callback() as watch:
            assert watch is None


def run_in_terminal(*args: str, delay: float) -> tuple[int, bytes, bytes]:
    """A run of the command line whose stderr is a terminal: exit code, stdout and stderr."""
    code = f"from paramcount.cli import main, progress; progress.DELAY = {delay}; main({list(args)!r})"
    reader, writer = os.openpty()
    environment = {**os.environ, "PYTHONPATH": str(Path(pc.__file__).parent.parent), "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=writer, env=environment
    ) as process:
        os.close(writer)
        text = b""
        try:
            while data := os.read(reader, 4096):
                text += data
        except OSError:  # the other end was closed
            pass
        out = process.stdout.read() if process.stdout else b""
    os.close(reader)
    return process.returncode, out, text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_reads_many_headers_has_a_bar_on_stderr(command: str, shards: str) -> None:
    code, out, text = run_in_terminal(*COMMANDS[command], shards, delay=-1)
    assert code == 0
    assert b"headers" in text
    assert b"100%" in text
    assert b"headers  [" not in out
    assert run_in_terminal(*COMMANDS[command], shards, delay=600) == (0, out, b"")


def test_tables_of_the_zoo_are_filled_with_a_progress_bar_the_first_time(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "read_cache", lambda key: None)
    monkeypatch.setattr(store, "write_cache", lambda key, data: None)
    monkeypatch.setattr(store, "list_ids", lambda own=True: iter(("gpt2-small", "gpt2-medium")))
    seen = []
    result = run_query("SELECT count(*) FROM published", watch=lambda done, n: seen.append((done, n)))
    assert (len(result.rows), seen) == (1, [(0, 2), (1, 2)])
    monkeypatch.setattr(progress, "DELAY", -1)
    assert run("sql", "SELECT model FROM published LIMIT 1").err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.progress_callback("counting models") as watch:
        run_query("SELECT model FROM published", watch=watch)
    assert "counting models" in terminal.getvalue()
