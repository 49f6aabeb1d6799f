"""What tests share: the command line in this process, and no Hugging Face cache or Hub of the machine they run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from paramcount.cli import main
from tests.running import Run, Runner


@pytest.fixture(autouse=True)
def _no_cache_of_this_machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(Path(tmp_path_factory.getbasetemp()) / "no-cache"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Run the command line on an 80-column terminal."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*args: str) -> Run:
        with pytest.raises(SystemExit) as leaving:
            main(list(args))
        captured = capsys.readouterr()
        return Run(int(leaving.value.code or 0), captured.out, captured.err)

    return call
