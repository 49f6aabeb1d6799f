"""Tables on a terminal: colour, width, encodings without some characters, names of wide characters."""

from __future__ import annotations

import glob
import json
import re
import unicodedata
from itertools import product
from pathlib import Path

import pytest

import paramcount.zoo as zoo
from paramcount.output.shortening import shorten_name, shorten_names
from paramcount.output.tables import Column, Table, render
from paramcount.output.terminal import ASCII, FALLBACK, measure_text
from tests.batches import in_batches
from tests.running import Runner, run_process
from tests.structures import pick_structures
from tests.test_config_files import QWEN, write_config

ROOT = Path(__file__).parents[1] / "paramcount"
ESCAPES = re.compile(r"\x1b\[\d+m")
COMMANDS = [
    ["gpt2-small"], ["deepseek-v3"], ["qwen2.5-32b"], ["diff", "llama-2-7b", "llama-3.1-8b"],
    ["verify", "qwen2.5-32b"], ["why", "gpt-oss-20b", "3.6B"],
    ["compare", "gpt2-*"], ["list", "llama"], ["trace", "gpt2-small"], ["explain", "gpt2-small"],
    ["why", "deepseek-v3"],
]  # fmt: skip


@pytest.fixture
def _on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("paramcount.cli.options.is_terminal", lambda: True)


# ---- colour


@pytest.mark.usefixtures("_on_a_terminal")
def test_totals_are_bold_arithmetic_is_dim_and_mismatches_are_red(run: Runner) -> None:
    shown = run("qwen2.5-32b").out
    assert shown.startswith("\x1b[1mQwen2.5 32B\x1b[0m   \x1b[1m32,763,876,352 parameters (32.8B)\x1b[0m\n")
    assert (
        "and published total, \x1b[31mdiffers from published\x1b[0m\n  \x1b[31m32.5B, non_embedding 31.0B\x1b[0m\n"
        in shown
    )
    assert "2.4%  \x1b[2m152,064 × 5,120\x1b[0m\n" in shown
    verified = run("verify", "qwen2.5-32b").out.splitlines()
    assert [bool(ESCAPES.search(line)) for line in verified[3:7]] == [False, False, True, True]
    assert "\x1b[31mdiffers\x1b[0m" in verified[5]
    assert "\x1b[1mtotal\x1b[0m" in run("diff", "llama-2-7b", "llama-3.1-8b").out


@pytest.mark.parametrize("command", COMMANDS)
def test_colour_moves_nothing(command: list[str], run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (40, 60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        plain = run(*command, "--color", "never").out
        assert "\x1b" not in plain
        assert ESCAPES.sub("", run(*command, "--color", "always").out) == plain


def test_pipes_and_files_have_no_colour_by_default(run: Runner, tmp_path: Path) -> None:
    assert "\x1b" not in run("gpt2-small").out
    assert "\x1b[1m" in run("gpt2-small", "--color", "always").out
    assert run("gpt2-small", "--color", "always", "-o", str(tmp_path / "out.txt")).code == 0
    assert "\x1b" not in (tmp_path / "out.txt").read_text(encoding="utf-8")
    for format in ("csv", "json", "markdown", "latex", "html"):
        assert "\x1b" not in run("gpt2-small", "--color", "always", "--format", format).out


@pytest.mark.usefixtures("_on_a_terminal")
@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_the_environment_turns_colour_off_and_color_always_on_again(
    variable: str, value: str, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b" in run("gpt2-small").out
    monkeypatch.setenv(variable, value)
    assert "\x1b" not in run("gpt2-small").out
    assert "\x1b" in run("gpt2-small", "--color", "always").out


# ---- encodings


def test_output_falls_back_to_ascii_in_an_encoding_without_some_characters() -> None:
    done = run_process("diff", "llama-2-7b", "llama-3.1-8b", PYTHONIOENCODING="cp1252")
    assert (done.returncode, done.stderr) == (0, b"")
    assert re.search(r"qkv +-805,306,368 ", done.stdout.decode("cp1252"))


def test_messages_fall_back_to_ascii_too() -> None:
    done = run_process("x" * 300, PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert b"xxx...xxx" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_the_fallback_of_an_encoding_has_no_question_marks(command: list[str], run: Runner) -> None:
    out = run(*command).out
    assert [e for e in ("cp1252", "ascii", "cp437", "latin-1") if b"?" in out.encode(e, FALLBACK)] == []


def test_every_character_that_paramcount_writes_has_an_ascii_fallback() -> None:
    letters = "ĠĊðŁĺ"  # of a tokenizer's alphabet names of tokens
    written = {
        c
        for path in glob.glob(f"{ROOT}/**/*.py", recursive=True)
        for c in Path(path).read_text(encoding="utf-8")
        if not c.isascii()
    }
    assert written - set(ASCII) - set(letters) - set("＝＋－＠通义千问²³¹") == set()
    assert all(text.isascii() for text in ASCII.values())


# ---- wide characters


def test_wide_characters_take_two_columns_and_tables_stay_aligned() -> None:
    table = Table(
        [Column("model", "model", right=False), Column("total", "total"), Column("how", "how", right=False)],
        [["通义千问", 7, "a"], ["e\u0301clair", 12345, "b"]],
        None,
    )
    lines = render(table, "table", 80).splitlines()
    assert lines == [
        "model      total  how",
        "────────  ──────  ───",
        "通义千问       7  a",
        "e\u0301clair    12,345  b",
    ]
    assert [measure_text(line[: line.rindex("  ")]) for line in lines] == [16] * 4


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_model_with_a_wide_name_fits_the_terminal(
    width: int, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(width))
    write_config(f"{'通义千问' * 12}/config.json")
    assert "通义千问" in run("通义千问" * 12).out
    for command in (["通义千问" * 12], ["diff", "通义千问" * 12, "qwen3-8b"]):
        assert max(map(display_width, run(*command).out.splitlines())) <= width


def display_width(line: str) -> int:
    """Columns by the Unicode standard: East Asian Width W and F take two."""
    return sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in line)


# ---- narrow terminals


def test_prose_without_room_continues_below_its_row(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert "qkv                21,261,312  17.1%\n    12 × (768 × 2,304 + 2,304)\n" in run("gpt2-small").out


@pytest.mark.parametrize("width", [60, 80, 200])
def test_list_is_one_table_within_the_width(width: int, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("list").out.splitlines()
    assert max(map(len, lines[:-1])) <= width
    assert "" not in lines
    assert len([line for line in lines if line.startswith("model ")]) == 1
    assert any(line.endswith("OpenAI") for line in lines) is (width > 80)


# ---- spreadsheets


@pytest.mark.parametrize("name", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "＝1+1"])
def test_a_name_that_a_spreadsheet_would_run_gets_an_apostrophe(
    name: str, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_config(f"{name}/config.json", QWEN)
    lines = run("scan", ".", "--csv", "--columns", "total,name").out.splitlines()
    assert lines[1].split(",")[-1].strip('"') == f"'{name}"
    transposed = run("compare", f"./{name}", "gpt2-small", "--csv", "--transpose", "--columns", "name").out
    assert f"'{name}" in transposed
    assert name in run("scan", ".", "--columns", "total,name").out


def test_numbers_stay_numbers_in_csv() -> None:
    table = Table([Column("a", "a"), Column("b", "b")], [[-5, "-5"], ["+1.5", "-"]], None)
    assert render(table, "csv", 80) == "a,b\n-5,-5\n+1.5,'-\n"


@pytest.mark.parametrize("id", ["gpt2-small", "deepseek-v3", "glm-4.5"])
def test_verify_and_why_put_the_number_of_the_source_beside_the_figure_in_80_columns(
    id: str, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command, rows in (("verify", "checks"), ("why", "figures")):
        lines = run(command, id).out.splitlines()
        sources = [line for line in lines if line.startswith("[")]
        cited = [match[1] for line in lines if (match := re.search(r"\S +(\[\d+\]) {2,}\S", line))]
        assert list(dict.fromkeys(cited)) == [line.partition(" ")[0] for line in sources]
        assert len(cited) == len(json.loads(run(command, id, "--json").out)[rows])


# ---- long names of tensors

LONG_TABLES = [("show", "--by", "tensor"), ("explain", "--tensors"), ("lora",)]


@pytest.mark.usefixtures("_on_a_terminal")
@pytest.mark.parametrize("id", pick_structures(every=48))
@in_batches(("command", "width"), list(product(LONG_TABLES, (60, 80))), ids=str)
def test_no_table_of_tensors_is_wider_than_the_terminal_or_in_panels(
    run: Runner, id: str, command: tuple[str, ...], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    name, *options = command
    lines = run(name, id, *options, "--color", "never").out.splitlines()
    assert max(map(measure_text, lines), default=0) <= width
    assert sum(line.startswith("──") for line in lines) <= 1


def test_a_terminal_shortens_names_that_another_program_gets_whole(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    whole = "model.layers.6.shared_transformer.feed_forward.gate_up_proj_adapter_list.0.1"
    commands = [(command, "zamba2-2.7b", *options, "--color", "never") for command, *options in LONG_TABLES]
    for command in commands:
        out = run(*command).out
        name = (
            whole.replace("model.layers.6.", "…") if command[0] == "lora" else whole
        )  # which lists all layers at once
        assert name in out and "…6…" not in out and "not enough space" not in out
    monkeypatch.setattr("paramcount.cli.options.is_terminal", lambda: True)
    for command in commands:
        out = run(*command).out
        assert name not in out
        assert re.search(r"….*_list\.0\.1", out)


@pytest.mark.usefixtures("_on_a_terminal")
def test_a_narrow_terminal_names_the_columns_that_it_leaves_out(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("lora", "zamba2-2.7b", "--color", "never")
    note = "note: not enough space for modules, rank; use a file format such as --csv"
    monkeypatch.setenv("COLUMNS", "60")
    assert note in " ".join(run(*command).out.split())
    monkeypatch.setenv("COLUMNS", "200")
    wide = run(*command).out
    assert "note:" not in wide
    assert wide.splitlines()[3].split() == ["module", "weight", "modules", "rank", "trainable"]


@pytest.mark.parametrize(
    "name", ["model.layers.0." + "x" * 300 + ".weight", "通义" * 40, "." * 90, "a.0." * 30, "0.1.2"]
)
@pytest.mark.parametrize("width", [1, 12, 40])
def test_a_strange_name_is_shortened_to_the_width(name: str, width: int) -> None:
    for short in (shorten_name(name, width), *shorten_names([name, f"x.{name}"], width).values()):
        assert measure_text(short) <= width
        assert short in (name, f"x.{name}") or "…" in short


@pytest.mark.usefixtures("_on_a_terminal")
def test_shortened_names_of_different_tensors_differ(run: Runner) -> None:
    names = {tensor.name for tensor in zoo.count_model(zoo.load_entry("zamba2-2.7b")).tensors}
    lines = run("show", "zamba2-2.7b", "--by", "tensor", "--color", "never").out.splitlines()
    shown = {line.split()[0] for line in lines if " [" in line}
    assert len(shown) == len(names)
    assert shown != names
