"""What tests share: the command line in this process, and no Hugging Face cache or Hub of the machine they run on."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from paramcount.cli import main
from paramcount.database import store
from paramcount.zoo import catalog, names
from tests.refusing import Refuse, command_error
from tests.running import Run, Runner
from tests.slow import mark_slow

# A shell that starts the tests in the background ignores SIGINT, and every process that a test starts would inherit
# that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The zoo is read when tests are collected: the entries of whoever runs the tests are not part of it.
os.environ["PARAMCOUNT_CONFIGS"] = os.path.join(os.sep, "no", "user", "zoo")
# Tests run side by side, and threads of a matrix product that wait for a processor keep it busy.
os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture(autouse=True, scope="session")
def _no_cache_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # what one process has computed, all may read
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(base / "no-cache"))
        patch.delenv("HF_HUB_CACHE", raising=False)
        patch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        patch.setenv("PARAMCOUNT_CACHE", str(shared / "cache"))
        # Its table of all models takes long to compute, and one test computes it.
        patch.setattr(store, "IS_INSTALLED", True)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_device_is_replaced() -> Iterator[None]:
    """A defect, or a mutant of the writer, must not put a file in the place of /dev/null: root may do that."""
    replace = os.replace

    def replace_file(source: str, target: str | Path) -> None:
        assert not Path(target).exists() or Path(target).is_file(), f"{target} is not a regular file"
        assert not Path(target).is_relative_to("/dev")
        replace(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", replace_file)
        yield


NEEDS_TIMM = pytest.mark.skip(reason="its vision encoder needs timm: pip install timm")
TIMM_TYPES = ("fast_vlm", "gemma3n", "gemma-3n", "perception_lm")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_slow(items)
    keep_each(config, items, int(os.environ.get("EACH", "1")))
    # The reference builds some vision encoders with timm, which it does not need for any other model type.
    if importlib.util.find_spec("timm") is None:
        for item in items:
            named = getattr(item, "callspec", None)
            values = [v for v in named.params.values() if isinstance(v, str)] if named else []
            if item.get_closest_marker("oracle") and any(v.startswith(TIMM_TYPES) for v in values):
                item.add_marker(NEEDS_TIMM)


def keep_each(config: pytest.Config, items: list[pytest.Item], n: int) -> None:
    """Leave out the exhaustive tests but for each n-th, and for those without parameters."""
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    seen = 0
    for item in items:
        is_one_of_many = item.get_closest_marker("exhaustive") is not None and "[" in item.nodeid
        (left_out if is_one_of_many and seen % n else kept).append(item)
        seen += is_one_of_many
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_collection_finish() -> None:
    """What is collected lives to the end, so the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


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


@pytest.fixture
def refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refuse:
    """The message with which the command line refuses a command that runs in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return partial(command_error, capsys)


@pytest.fixture
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def own_zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the user's own entries; it does not exist yet."""
    monkeypatch.setenv("PARAMCOUNT_CONFIGS", str(tmp_path / "own zoo"))
    forget_zoo()
    yield tmp_path / "own zoo"
    forget_zoo()


def forget_zoo() -> None:
    """Read the folders of the zoo anew."""
    catalog.clear_caches()
    names.index_spellings.cache_clear()
