"""-o FILE: written whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
import threading
from pathlib import Path

import pytest

import paramcount as pc
from paramcount.output.files import EXTENSIONS, write_atomically
from tests.refusing import Refuse, list_directory
from tests.running import MAIN, Runner, run_process


@pytest.fixture(autouse=True)
def _in_an_empty_directory_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect must not put a file in the place of a device: root may do that. The zoo's cache has its own folder."""
    replace, zoo_cache = os.replace, Path(os.environ["PARAMCOUNT_CACHE"])

    def replace_file(source: str, target: Path) -> None:
        assert Path(target).parent == zoo_cache or Path(target).is_relative_to(tmp_path.resolve())
        replace(source, target)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "replace", replace_file)


@pytest.mark.parametrize("ending", EXTENSIONS)
def test_a_file_contains_what_the_terminal_would_show(ending: str, run: Runner) -> None:
    expected = run("gpt2-small", "--format", EXTENSIONS[ending]).out
    assert run("gpt2-small", "-o", f"out{ending.upper()}") == (0, "", "")
    assert Path(f"out{ending.upper()}").read_bytes().decode() == expected
    assert len(list_directory()) == 1


def test_a_new_file_gets_the_default_mode_and_an_existing_one_keeps_its_own(run: Runner) -> None:
    before = os.umask(0o027)
    try:
        assert run("gpt2-small", "-o", "new.csv") == (0, "", "")
        Path("old.csv").write_text("old", encoding="utf-8")
        Path("old.csv").chmod(0o604)
        assert run("gpt2-small", "-o", "old.csv") == (0, "", "")
    finally:
        os.umask(before)
    assert [Path(name).stat().st_mode & 0o777 for name in ("new.csv", "old.csv")] == [0o640, 0o604]
    assert Path("old.csv").read_bytes() == Path("new.csv").read_bytes() != b"old"


@pytest.mark.parametrize("target", ["target.csv", "sub/target.csv"])
@pytest.mark.parametrize("exists", [True, False])
def test_writing_to_a_link_writes_its_target(target: str, exists: bool, run: Runner) -> None:
    Path("sub").mkdir()
    if exists:
        Path(target).write_text("old", encoding="utf-8")
    Path("link.csv").symlink_to(target)
    assert run("gpt2-small", "-o", "link.csv") == (0, "", "")
    assert os.readlink("link.csv") == target
    assert Path(target).read_text(encoding="utf-8").startswith("component,parameters,active\n")


def make_obstacle(path: str) -> None:
    """What stands in the way of some of the paths below."""
    Path("folder.csv").mkdir()
    Path("file").touch()
    Path("loop.csv").symlink_to("loop.csv")
    Path("lost.csv").symlink_to("nowhere/lost.csv")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("folder.csv", "-o folder.csv cannot be written: Is a directory"),
        ("nowhere/out.csv", "-o nowhere/out.csv cannot be written: No such file or directory"),
        ("lost.csv", "-o lost.csv cannot be written: No such file or directory"),
        ("file/out.csv", "-o file/out.csv cannot be written: Not a directory"),
        ("loop.csv", "-o loop.csv cannot be written: Too many levels of symbolic links"),
        ("x\0.csv", r"-o x\x00.csv cannot be written: invalid file name"),
        ("x\ud800.csv", r"-o x\ud800.csv cannot be written: invalid file name"),
        ("\x1b[2J/out.csv", r"-o \x1b[2J/out.csv cannot be written: No such file or directory"),
        ("x" * 300 + ".csv", f"-o {'x' * 99}…{'x' * 96}.csv cannot be written: File name too long"),
        ("~no-such-person/out.csv",
         "-o ~no-such-person/out.csv cannot be written: Could not determine home directory."),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_written_is_an_error(path: str, message: str, refuse: Refuse) -> None:
    make_obstacle(path)
    for command in (["gpt2-small"], ["compare", "gpt2-*"], ["list", "gpt"], ["verify", "llama-3.1-8b"]):
        assert refuse(*command, "-o", path) == message


def test_an_invalid_file_name_is_an_error(refuse: Refuse) -> None:
    message = refuse("gpt2-small", "-o", "\ud800.csv")
    assert message.startswith(r"-o \ud800.csv cannot be written: ")


def test_a_read_only_file_is_left_unchanged(monkeypatch: pytest.MonkeyPatch, refuse: Refuse) -> None:
    Path("out.csv").write_text("old", encoding="utf-8")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    assert refuse("gpt2-small", "-o", "out.csv") == "-o out.csv cannot be written: the file is read-only"


@pytest.mark.parametrize(
    "args",
    [
        ("gpt2-smal",),
        ("gpt2-small", "--csv", "--json"),
        ("compare", "gpt2-small", "--sort", "totl"),
        ("verify", "./none.yaml"),
    ],
)
def test_bad_input_leaves_an_existing_file_unchanged(args: tuple[str, ...], refuse: Refuse) -> None:
    Path("out.csv").write_text("old", encoding="utf-8")
    assert refuse(*args, "-o", "out.csv")
    assert Path("out.csv").read_text(encoding="utf-8") == "old"


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on a file's size")
@pytest.mark.parametrize("exists", [True, False])
def test_a_full_disk_leaves_no_partial_file(exists: bool) -> None:
    if exists:
        Path("out.csv").write_text("old", encoding="utf-8")
    before = list_directory()
    # Python 3.11 would leave truncated bytecode behind.
    unwritten = "import sys; sys.dont_write_bytecode = True"
    limit = f"{unwritten}; import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))"
    done = run_process("qwen*", "-o", "out.csv", code=f"{limit}; {MAIN}")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"error: -o out.csv cannot be written: File too large\n"
    assert list_directory() == before


@pytest.mark.parametrize("broken", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_rename_leaves_no_trace(broken: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(*_: object) -> None:
        raise broken

    Path("out.csv").write_text("old", encoding="utf-8")
    before = list_directory()
    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises((pc.ParamcountError, KeyboardInterrupt)):
        write_atomically("out.csv", "new")
    assert list_directory() == before


def test_a_terminated_program_leaves_no_temporary_file() -> None:
    code = (
        "import os, signal, runpy; os.replace = lambda *_: os.kill(os.getpid(), signal.SIGTERM); "
        "runpy.run_module('paramcount', run_name='__main__')"
    )
    done = run_process("gpt2-small", "-o", "out.csv", code=code)
    assert (done.returncode, done.stdout, done.stderr) == (143, b"", b"")
    assert list_directory() == {}


@pytest.mark.skipif(sys.platform == "win32", reason="directories cannot be opened")
def test_data_reaches_the_disk_before_the_rename(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    replace = os.replace

    def record_sync(handle: int) -> None:
        steps.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else f"{os.fstat(handle).st_size} bytes")

    def record_replace(source: str, target: Path) -> None:
        steps.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", record_replace)
    write_atomically("out.csv", "12345")
    assert steps == ["5 bytes", "rename", "directory"]


def test_text_with_a_lone_surrogate_is_not_written() -> None:
    with pytest.raises(
        pc.ParamcountError, match=r"^-o out.csv cannot be written: surrogates not allowed at character 0$"
    ):
        write_atomically("out.csv", "\ud800")
    assert list_directory() == {}


# ---- devices and pipes


def test_the_null_device_is_a_valid_output(run: Runner) -> None:
    assert run("gpt2-small", "--csv", "-o", os.devnull) == (0, "", "")
    assert list_directory() == {}


@pytest.mark.skipif(not hasattr(os, "mknod"), reason="the system has no device nodes")
def test_a_device_stays_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it is missing when paramcount looks for it first, and comes back before the file takes its name."""
    null = os.stat("/dev/null")
    try:
        os.mknod("null.csv", null.st_mode, null.st_rdev)
    except PermissionError:
        pytest.skip("only root may make device nodes")
    Path("link.csv").symlink_to("null.csv")
    for name in ("null.csv", "link.csv"):
        write_atomically(name, "text")
        assert os.stat("null.csv").st_rdev == null.st_rdev
    look = Path.stat
    looks: list[Path] = []

    def miss_once(path: Path, **options: bool) -> os.stat_result:
        if path.name == "null.csv" and not looks:
            looks.append(path)
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return look(path, **options)

    monkeypatch.setattr(Path, "stat", miss_once)
    with pytest.raises(pc.ParamcountError, match=r"^-o null.csv cannot be written: not a regular file$"):
        write_atomically("null.csv", "text")
    assert looks
    assert {path.name for path in Path().iterdir()} == {"null.csv", "link.csv"}
    assert os.stat("null.csv").st_rdev == null.st_rdev


@pytest.mark.skipif(sys.platform == "win32", reason="no directory of devices")
@pytest.mark.parametrize(
    "name", ["/dev/paramcount-test.csv", "/dev/../dev/paramcount-test.csv", "/proc/paramcount-test.csv"]
)
def test_no_file_is_created_in_system_directories(name: str) -> None:
    with pytest.raises(pc.ParamcountError, match=r"cannot be written: No such file or directory$"):
        write_atomically(name, "text")
    assert not Path(name).exists()


def test_a_dash_means_standard_output(run: Runner) -> None:
    assert run("gpt2-small", "--csv", "-o", "-") == run("gpt2-small", "--csv")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_device_is_an_error(refuse: Refuse) -> None:
    assert refuse("gpt2-small", "--csv", "-o", "/dev/full") == "-o /dev/full cannot be written: No space left on device"


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="the system has no /dev/stdout")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_open_files_are_appended_to(name: str, run: Runner) -> None:
    expected = run("gpt2-small", "--csv").out
    assert run_process("gpt2-small", "--csv", "-o", name).stdout.decode() == expected
    Path("log").write_text("old\n", encoding="utf-8")
    with Path("log").open("ab") as log:
        done = run_process("gpt2-small", "--csv", "-o", name, stdout=log.fileno())
    assert (done.returncode, done.stderr) == (0, b"")
    assert Path("log").read_text(encoding="utf-8") == "old\n" + expected
    assert len(list_directory()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes with names")
def test_a_named_pipe_is_written_directly(run: Runner) -> None:
    os.mkfifo("pipe.csv")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe.csv").read_text(encoding="utf-8")), daemon=True)
    reader.start()
    assert run("gpt2-small", "-o", "pipe.csv") == (0, "", "")
    reader.join(10)
    assert Path("pipe.csv").is_fifo()
    assert read == [run("gpt2-small", "--csv").out]


# ---- the extension and the format


@pytest.mark.parametrize("path", ["a.txt", "a.dat", "a", "a.csv"])
def test_plain_text_and_unknown_extensions_accept_any_format(path: str, run: Runner) -> None:
    expected = run("gpt2-small", "--csv").out
    assert run("gpt2-small", "--csv", "--output", path) == (0, "", "")
    assert Path(path).read_text(encoding="utf-8") == expected
