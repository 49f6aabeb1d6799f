"""Invalid options, and how a process ends: invalid arguments, closed pipes, full disks, Ctrl-C."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import paramcount as pc
from tests.refusing import assert_one_line
from tests.running import MAIN, Runner, run_process

pytestmark = pytest.mark.usefixtures("_in_an_empty_directory")


def test_without_arguments_the_help_is_shown(run: Runner) -> None:
    done = run()
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: paramcount [OPTIONS] COMMAND [ARGS]...\n")


# ---- whole processes


def test_a_process_prints_an_error_of_one_line() -> None:
    done = run_process("gpt2-smal")
    expected = (
        b"error: unknown model 'gpt2-smal' (expected a name from `paramcount list`, or a path such as ./model.yaml); "
        b"did you mean gpt2-small, gpt-3-small or gpt2-xl?\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", expected)


def test_an_argument_that_is_not_unicode_is_an_error() -> None:
    done = run_process(b"gpt\xff\x1b[2J")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(rb"error: unknown model 'gpt\udcff\x1b[2J' (expected ")
    assert_one_line(done.stderr.decode().removesuffix("\n"))


@pytest.mark.parametrize(
    "args",
    [
        ("qwen*", "--json"), ("--help",), ("gpt2-small",), ("verify", "llama-3.1-8b"),
        ("gpt2-small", "--csv", "-o", "/dev/stdout"),
    ],
)  # fmt: skip
def test_a_closed_pipe_is_silent(args: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run_process(*args, stdout=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_at_stdout_is_an_error_of_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        done = run_process("gpt2-small", stdout=full)
    assert (done.returncode, done.stderr) == (2, b"error: stdout: No space left on device\n")


def test_an_interrupt_exits_with_130_and_prints_nothing() -> None:
    interrupt = "lambda model: os.kill(os.getpid(), signal.SIGINT)"
    code = f"import os, signal, paramcount.cli.show as s; s.count_model = {interrupt}; {MAIN}"
    done = run_process("gpt2-small", "-o", "out.csv", code=code)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, b"", b"")
    assert not Path("out.csv").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("args", [("gpt2-smal",), ("gpt2-small", "--nonsense"), ("scan", "")])
def test_an_error_that_cannot_be_printed_still_exits_with_2(args: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        assert run_process(*args, stderr=full).returncode == 2
    closed = f"import os, sys; os.close(2); os.execv(sys.executable, [sys.executable, '-c', {MAIN!r}, *sys.argv[1:]])"
    assert run_process(*args, code=closed).returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_result_and_its_error_that_cannot_be_printed_exit_with_2() -> None:
    with Path("/dev/full").open("wb") as full:
        assert run_process("gpt2-small", stdout=full, stderr=full).returncode == 2


def interrupting_code(module: str, signal: str) -> str:
    """A program that receives a signal while it imports a module."""
    kill = f"os.kill(os.getpid(), signal.{signal}) if name == {module!r} else None"
    finder = f"type('Finder', (), {{'find_spec': lambda self, name, *_: {kill}}})()"
    run = "runpy.run_module('paramcount', run_name='__main__')"
    return f"import os, runpy, signal, sys; sys.meta_path.insert(0, {finder}); {run}"


@pytest.mark.parametrize("module", ["click", "paramcount.cli", "paramcount.cli.show", "yaml", "pydantic"])
@pytest.mark.parametrize(("signal", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interrupt_during_the_imports_is_silent(module: str, signal: str, code: int) -> None:
    done = run_process("gpt2-small", code=interrupting_code(module, signal))
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


# ---- other names of columns


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("num_hidden_layers", "n_layers"), ("hidden_size", "d_model"), ("n_embd", "d_model"),
        ("KV heads", "n_kv_heads"), ("layers", "n_layers"), ("Total", "total"),
        ("num_local_experts", "n_routed_experts"), ("max_position_embeddings", "context_length"),
        ("tie_word_embeddings", "tied"), ("BF16", "bytes_bf16"), ("params", "total"), ("kv_heads", "n_kv_heads"),
        ("depth", "n_layers"),
    ],
)  # fmt: skip
def test_a_config_json_key_a_heading_and_what_people_say_select_a_column(name: str, column: str, run: Runner) -> None:
    line = ("compare", "gpt2-small", "mixtral-8x7b", "--csv", "--columns")
    found = run(*line, name, f"--sort=-{name}")
    assert found == run(*line, column, f"--sort=-{column}")
    assert (found.code, found.err, found.out.splitlines()[0]) == (0, "", f"id,{column}")


def test_no_error_has_more_than_five_suggestions() -> None:
    error = pc.ParamcountError("x", nearest=[f"n_{i}" for i in range(9)])
    assert error.nearest == ("n_0", "n_1", "n_2", "n_3", "n_4")
