"""What tests share: the command line in this process, and no Hugging Face cache or Hub of the machine they run on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from paramcount.cli import main
from tests.running import Run, Runner

# A shell that starts the tests in the background ignores SIGINT, and every process that a test starts would inherit
# that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_cache_of_this_machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(Path(tmp_path_factory.getbasetemp()) / "no-cache"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")


@pytest.fixture(autouse=True)
def _no_device_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect, or a mutant of the writer, must not put a file in the place of /dev/null: root may do that."""
    replace = os.replace

    def replace_file(source: str, target: str | Path) -> None:
        assert not Path(target).exists() or Path(target).is_file(), f"{target} is not a regular file"
        assert not Path(target).is_relative_to("/dev")
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_file)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Run the command line on an 80-column terminal."""
    monkeypatch.setenv("COLUMNS", "80")

    def run_command(*args: str) -> Run:
        with pytest.raises(SystemExit) as leaving:
            main(list(args))
        captured = capsys.readouterr()
        return Run(int(leaving.value.code or 0), captured.out, captured.err)

    return run_command
