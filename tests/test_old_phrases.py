"""Phrases that paramcount no longer uses: none in help, output, errors, documents and docstrings."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path

import pytest

import paramcount as pc
from paramcount.cli.commands import COMMANDS
from tests.running import Run, Runner
from tests.sources import read_tree

PACKAGE = Path(pc.__file__).parent
ROOT = PACKAGE.parent
# "accounted for" survives in one place: the value "not accounted for" of `verdict` in the JSON and CSV of `why MODEL
# CHECKPOINT`, which programs
# compare with. Its text is "1 problem" or "some values are unexplained".
PHRASES = (ROOT / "tests" / "data" / "old_phrases.txt").read_text(encoding="utf-8").splitlines()


MODELS = (
    "gpt2-small", "llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-20b", "t5-small", "gemma-3-1b",
    "codestral-mamba-7b", "qwen3-30b-a3b", "jamba-v0.1",
)  # fmt: skip
COMMAND_LINES = [
    *(f"{command} {model}" for command in ("show", "trace", "explain", "why") for model in MODELS),
    # The guide on commands shows `verify gpt2-small`, which runs the whole model in NumPy.
    *(f"verify {model}" for model in MODELS[1:]),
    *(f"show {model} --{format}" for model in MODELS[:3] for format in ("json", "markdown", "latex", "csv")),
    "show deepseek-v3 --by layer", "show deepseek-v3 --by part", "show gpt2-small --by tensor",
    "show gpt-4 --estimates",
    "compare gpt deepseek --estimates", "compare gpt2-small llama-3.1-8b --transpose", "compare 'qwen3-*' --csv",
    "compare gpt --json",
    "diff llama-2-7b llama-3.1-8b", "diff deepseek-v3 kimi-k2", "diff gpt2-small --set n_layers=24",
    "explain deepseek-v3 --layer 60", "explain llama-3.1-8b --head", "explain gpt2-small --tensors",
    "trace deepseek-v3 --decode --past 9",
    "trace gpt2-small --tokens 5 --pad 1024 --batch 2", "trace t5-small --source 7", "why gpt-oss-20b 3.6B",
    "why gpt2-small 117M 137022720",
    "why glm-4.5 355B", "why deepseek-v3 37B", "list", "architectures", "architectures --json", "docs",
    "show gpt2-small --set n_layers=2", "verify gpt2-small --set n_layers=2 --set vocab_size=100",
    "draw gpt2-small -o -",
    "draw deepseek-v3 -o -", "map deepseek-v3 -o -", "explore gpt2-small -o -", "audit claims.csv", "scan .",
]  # fmt: skip
BAD_LINES = [
    "gpt2-smal", "show", "show gpt2-small --jsno", "show gpt2-small --by layer --keys", "trace gpt2-small --past 3",
    "trace gpt2-small --decode",
    "trace gpt2-small --tokens 0", "trace gpt2-small --tokens 2000", "trace gpt2-small --text a",
    "trace gpt2-small --weights w", "trace bert-base --past 2 --decode",
    "why 3B", "why gpt2-small 1.5", "why gpt2-small 3B", "diff gpt2-small", "compare gpt2-small --sort totl",
    "compare gpt2-small --scale log",
    "show gpt2-small --set n_layers=0", "show gpt2-small --set n_lyers=3", "show gpt2-small --set n_heads=5",
    "show gpt-4", "explain gpt2-small --layer 99",
    "draw deepseek-v3 --layer 99", "draw gpt2-small -o x.gif", "show gpt2-small -o x.cvs", "verify gpt2-small gpt2-xl",
    "verify gpt2-small -", "docs nothing",
    "schema nothing", "help nothing", "audit nothing.csv", "scan nothing", "show ./nothing", "show ./bad.json",
    "show ./odd.json", "show llama --csv --json",
]  # fmt: skip


def find_old_phrases(text: str) -> list[str]:
    words = " ".join(text.split()).casefold()
    return [phrase for phrase in PHRASES if phrase.casefold() in words]


@pytest.fixture(autouse=True)
def _directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    (tmp_path / "bad.json").write_text('{"model_type": "llama", "num_attention_heads": 7}', encoding="utf-8")
    (tmp_path / "odd.json").write_text(
        '{"model_type": "llama", "hidden_size": 4096, "num_layer": 7, "n_experts": 3}', encoding="utf-8"
    )
    (tmp_path / "claims.csv").write_text(
        "model,params,layers\ngpt2-small,117M,12\nllama-2-7b,7B,31\nunknown,7B,3\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)


def test_an_old_phrase_is_found_across_lines_and_in_any_case() -> None:
    assert find_old_phrases("A Table of\n  tokens") == ["table of tokens"]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_no_old_phrase(command: str, run: Runner) -> None:
    done = run(*command.split(), "--help")
    assert (done.code, find_old_phrases(done.out)) == (0, [])


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_output_has_no_old_phrase(line: str, run: Runner) -> None:
    done = run(*shlex.split(line))
    assert done.code in (0, 1), done.err
    assert find_old_phrases(done.out + done.err) == []


@pytest.mark.parametrize("line", BAD_LINES)
def test_an_error_has_no_old_phrase(line: str, run: Runner) -> None:
    done: Run = run(*shlex.split(line))
    assert find_old_phrases(done.out + done.err) == []


@pytest.mark.parametrize(
    "path",
    [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((PACKAGE / "docs").glob("*.md"))],
    ids=lambda path: path.name,
)
def test_a_document_has_no_old_phrase(path: Path) -> None:
    assert find_old_phrases(path.read_text(encoding="utf-8")) == []


def test_no_docstring_has_an_old_phrase() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(read_tree(path)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                name = str(path.relative_to(PACKAGE))
                found |= {(name, phrase) for phrase in find_old_phrases(ast.get_docstring(node) or "")}
    assert found == set()
