"""Pipes in place of files: nothing waits for someone to write into them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.running import MAIN, run_process

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


# As if it was installed, so that it does not compute the table of the zoo.
INSTALLED = f"from paramcount.database import store; store.IS_INSTALLED = True; {MAIN}"


def test_a_pipe_in_place_of_a_cache_file_is_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    expected = run_process("list", "--csv", code=INSTALLED, PARAMCOUNT_CACHE=str(tmp_path))
    (cached,) = tmp_path.iterdir()
    cached.unlink()
    os.mkfifo(cached)
    done = run_process("list", "--csv", code=INSTALLED, PARAMCOUNT_CACHE=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, expected.stdout)
    assert cached.is_fifo()


@pytest.mark.parametrize("line", ["list", "show fifo", "compare fifo gpt2-small"])
def test_a_pipe_in_place_of_an_entry_is_an_error_that_names_it(line: str, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    os.mkfifo(folder / "fifo.yaml")
    done = run_process(*line.split(), PARAMCOUNT_CONFIGS=str(tmp_path), code=INSTALLED, PARAMCOUNT_CACHE="")
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"error: {folder / 'fifo.yaml'} is not a file")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "model.gguf", "model.safetensors.index.json"])
def test_a_pipe_in_place_of_a_model_is_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    for line in (["show", str(tmp_path / name)], ["show", str(tmp_path)], ["verify", str(tmp_path)]):
        done = run_process(*line, code=INSTALLED, PARAMCOUNT_CACHE="")
        assert done.returncode == 2, line
        assert done.stderr.startswith(b"error: "), line
        assert str(tmp_path) in done.stderr.decode(), line
