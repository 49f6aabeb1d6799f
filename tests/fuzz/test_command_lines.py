"""Command lines made of commands, options, names and files: an answer, or exit code 2 and one line."""

from __future__ import annotations

import contextlib
import io
import json
import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.cli import main
from paramcount.cli.commands import COMMANDS
from paramcount.zoo import names
from tests.fuzz.frame import call_or_refuse, check_count, fuzz, often
from tests.headers import load_saved, write_header, write_shards
from tests.refusing import assert_one_line

pytestmark = pytest.mark.fuzz

WORDS = (
    st.text(max_size=30)
    | st.text(string.printable, max_size=12)
    | st.text("gpt2-*?[]!/.~yaml\0\n\ud800\u202e", max_size=8)
)


@often
@given(WORDS)
def test_any_name_is_found_or_rejected(name: str) -> None:
    check_count(call_or_refuse(lambda: pc.count(name)))
    call_or_refuse(lambda: names.expand_pattern(name))
    assert call_or_refuse(lambda: zoo.find_path(name)) is None or name in zoo.list_ids()


COMMAND = [name for name in COMMANDS if name not in ("help", "docs")]
WORD = [
    "gpt2-small", "gpt-oss", "gpt-oss-*", "gpt-4", "deepseek-v3", "qwen2", "./none.yaml", "./config.json", "./m.json",
    "./model.safetensors.index.json", "claims.csv",
    ".", "s", "124M", "8B", "7.61B", "-1", "", "-", "--", "a/b", "~nobody", "\x1b[2J", "\ud800", "=1+1", "a" * 300,
    "n_layers=3", "https://huggingface.co/a/b", "0", "1",
]  # fmt: skip
OPTION = [
    "--csv", "--json", "--markdown", "--format", "html", "table", "latex", "--columns", "total,active", "--sort",
    "-total", "--transpose", "--estimates", "--help", "--version",
    "--nonsense=1", "--format=csv", "--set", "--set=n_layers=2", "--set=d_model=0", "--by=layer", "--by=part", "--by",
    "--keys", "--strict", "--tokens=3", "--past=2", "--decode",
    "--layer=0", "--scale=0", "--head=1", "-o", "out.csv", "out.svg", "/dev/null", "nowhere/x.csv",
]  # fmt: skip


def random_line(rng: random.Random) -> list[str]:
    """A command line."""
    first = [rng.choice(COMMAND)] if rng.random() < 0.7 else []
    return first + [
        rng.choice(WORD if rng.random() < 0.6 else OPTION) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4)))
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a file of each kind."""
    tensors, config = load_saved("qwen2_moe").tensors, json.dumps(load_saved("qwen2_moe").config)
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    (tmp_path / "s" / "a").mkdir(parents=True)
    (tmp_path / "s" / "a" / "config.json").write_text(config, encoding="utf-8")
    (tmp_path / "claims.csv").write_text("model,params\ngpt2-small,124M\n", encoding="utf-8")
    write_header(tmp_path / "m.json", tensors)
    write_shards(tmp_path, tensors)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", None)
    return tmp_path


def run_line(args: list[str]) -> str:
    """How a command line ends."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as leaving:
        main(args)
    code = int(leaving.value.code or 0)
    for text in err.getvalue().splitlines():
        assert_one_line(text)
    assert code in (0, 1, 2), args
    if code == 2:
        assert out.getvalue() == ""
        assert err.getvalue().count("\n") >= 1
    return str(code)


def test_any_command_line_ends_well(folder: Path) -> None:
    assert {"0", "2"} <= fuzz(random_line, run_line)
