"""Harmful checkpoints through the command line: a one-line error, exit code 2, nothing written, nothing run."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from tests.headers import Tensors, load_saved, write_file, write_header
from tests.refusing import command_error
from tests.running import Runner
from tests.test_gguf_files import STRING, make_start, pack_array, pack_item, pack_string, pack_tensor_info
from tests.test_gguf_files import make_file as gguf_file
from tests.test_safetensors_files import header_entry
from tests.test_safetensors_files import make_file as safetensors_file

MARKER = "was-run"
COMMANDS: dict[str, tuple[str, ...]] = {"verify": ("verify", "gpt2-small"), "alone": (), "why": ("why", "gpt2-small")}
ESCAPE = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m\r\n"
Case = Callable[[Path], Path]  # makes files in a folder, and says which to name


class Payload:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {MARKER}",)


PICKLE = pickle.dumps(Payload(), 2)


def case_holding(name: str, data: bytes, size: int | None = None) -> Case:
    """A file that begins with these bytes; with a size, the rest of it takes no space."""

    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(data)
        os.truncate(path, len(data) if size is None else size)
        return path

    return make


# ---- headers: what else is wrong with one is in test_safetensors_files.py and test_gguf_files.py


def case_header(entries: object, name: str = "model.safetensors") -> Case:
    return case_holding(name, safetensors_file(entries, bytes(4)))


def case_gguf(metadata: list[bytes], tensor: bytes) -> Case:
    return case_holding("model.gguf", gguf_file(metadata, [tensor], 64))


HEADERS: dict[str, Case] = {
    "a million axes": case_header({"a": header_entry(0, 4, shape=[1] * 1_000_000)}),
    "a saved header of a million axes": case_header({"a": header_entry(0, 4, shape=[1] * 1_000_000)}, "saved.json"),
    "lists nested deeply": case_header(b'{"a":' + b"[" * 1_000_000),
    "a name of terminal escapes": case_header({ESCAPE: header_entry(0, 4)}),
    "a type of terminal escapes": case_header({"a": header_entry(0, 4, ESCAPE)}),
    "2^64 - 1 tensors": case_holding("model.gguf", make_start(2**64 - 1, 0)),
    "an array of 2^64 - 1 texts": case_holding("model.gguf", make_start(0, 1, pack_array("a", STRING, 2**64 - 1))),
    "a tensor behind the end": case_gguf([], pack_tensor_info("a", (2**40,), start=2**50)),
    "a tensor's name of terminal escapes": case_gguf([], pack_tensor_info(ESCAPE)),
    "an architecture of terminal escapes": case_gguf(
        [pack_item("general.architecture", STRING, pack_string(ESCAPE))], pack_tensor_info("a", (4,))
    ),
}

# ---- indices, links, pickles, nothing


def case_index(placed: object) -> Case:
    return case_holding(
        "model.safetensors.index.json", json.dumps({"metadata": {"total_size": 4}, "weight_map": placed}).encode()
    )


def case_outside(name: str) -> Case:
    """An index in a folder that lists an existing file outside it."""

    def make(folder: Path) -> Path:
        write_file(folder / "secret.safetensors", {"a": ("F32", (1,))})
        (folder / "inside").mkdir()
        return case_index({"a": name.format(folder=folder)})(folder / "inside")

    return make


def make_device(folder: Path) -> Path:
    (folder / "model.gguf").symlink_to("/dev/zero")
    return folder / "model.gguf"


def make_shard_device(folder: Path) -> Path:
    (folder / "a.safetensors").symlink_to("/dev/zero")
    return case_index({"a": "a.safetensors"})(folder)


def make_pickles(folder: Path) -> Path:
    folder /= "pickles"
    folder.mkdir()
    (folder / "pytorch_model.bin").write_bytes(PICKLE)
    return folder


NAMES = (
    "model.safetensors",
    "model.gguf",
    "saved.json",
    "model.safetensors.index.json",
    "pytorch_model.bin.index.json",
)
OTHERS: dict[str, Case] = {
    "an index that names ..": case_outside("../secret.safetensors"),
    "an index that names an absolute path": case_outside("{folder}/secret.safetensors"),
    "an index that names .. within": case_outside("deeper/../../secret.safetensors"),
    "an index that names terminal escapes": case_index({"a": f"{ESCAPE}.safetensors"}),
    "an index of terminal escapes": case_index({ESCAPE: "a.safetensors"}),
    "an index of no names": case_index([["a", "a.safetensors"]]),
    "an index of numbers": case_index({"a": 7}),
    "an index nested deeply": case_holding("model.safetensors.index.json", b'{"weight_map": {"a": ' + b"[" * 1_000_000),
    "an index of 2 GB": case_holding("model.safetensors.index.json", b'{"weight_map": {', 2**31),
    "a device": make_device,
    "a shard that is a device": make_shard_device,
    "a folder of pickles": make_pickles,
    "a pickle": case_holding("pytorch_model.bin", PICKLE),
    **{f"a pickle called {name}": case_holding(name, PICKLE) for name in NAMES},
    **{f"a pickle of protocol {n}": case_holding(NAMES[0], pickle.dumps(Payload(), n)) for n in (3, 4, 5)},
    **{f"nothing in {name}": case_holding(name, b"") for name in NAMES},
    **{f"zeros in {name}": case_holding(name, bytes(4096)) for name in NAMES},
    **{f"a terabyte of zeros in {name}": case_holding(name, b"", 2**40) for name in NAMES},
}
CASES = HEADERS | OTHERS


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, where a payload would leave its trace."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", CASES)
def test_every_command_rejects_a_hostile_file_in_one_line(
    case: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = CASES[case](folder)
    for command in COMMANDS.values():
        message = command_error(capsys, *command, str(path))
        assert "Traceback" not in message
        command_error(capsys, *command, str(path), "-o", "out.json")  # which says, too, that nothing was written
    assert not (folder / MARKER).exists()


def test_the_payload_would_leave_a_trace(folder: Path) -> None:
    pickle.loads(PICKLE)  # noqa: S301
    assert (folder / MARKER).exists()


@pytest.mark.parametrize(
    "case", ["an index that names ..", "an index that names an absolute path", "an index that names .. within"]
)
def test_nothing_from_a_file_outside_the_folder_is_shown(
    case: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = command_error(capsys, "verify", "gpt2-small", str(CASES[case](folder)))
    assert "secret.safetensors" in message
    assert "F32" not in message


# ---- however large


def make_valueless_file(names: Iterator[str]) -> bytes:
    """A file of tensors without values."""
    return safetensors_file(dict.fromkeys(names, header_entry(0, 0, "U8", (0,))))


LARGE: dict[str, Callable[[], bytes]] = {
    "a name of a million words": lambda: make_valueless_file(iter(["a." * 1_000_000 + "w"])),
    "a name of a million numbers": lambda: make_valueless_file(iter(["1." * 1_000_000 + "w"])),
    "a name of ten million letters": lambda: make_valueless_file(iter(["q" * 10_000_000])),
    "names of many words": lambda: make_valueless_file("a." * 3000 + f"w{i}" for i in range(200)),
    "names that end like declared ones": lambda: make_valueless_file(
        f"x{i}.h.{i % 12}.attn.c_attn.weight" for i in range(4000)
    ),
    "names of indices without order": lambda: make_valueless_file(
        f"a.{i * 7919 % 10_007}.{i * 31 % 6007}.{i % 3}.w" for i in range(4000)
    ),
    "scales without what they scale": lambda: make_valueless_file(
        f"x{i}.{end}" for i in range(1500) for end in ("scales", "qzeros", "g_idx")
    ),
}
LIMITED = """
import io, json, resource, sys
from contextlib import redirect_stderr, redirect_stdout
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
from paramcount.cli import main
found = []
for args in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(args)
        except SystemExit as leaving:
            code = leaving.code or 0
    found.append([code, out.getvalue(), err.getvalue()])
json.dump(found, sys.stdout)
"""


def run_limited(*lines: tuple[str, ...]) -> list[tuple[int, str, str]]:
    """The command line in a process that may use one gigabyte."""
    found = {**os.environ, "PYTHONPATH": str(Path(pc.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env=found,
    )
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


@pytest.mark.exhaustive
def test_the_answer_for_a_huge_header_is_short_and_takes_bounded_memory(folder: Path) -> None:
    lines = []
    for i, make in enumerate(LARGE.values()):
        (folder / f"{i}.safetensors").write_bytes(make())
        lines += [(*command, f"./{i}.safetensors") for command in COMMANDS.values()]
    for args, (code, out, err) in zip(lines, run_limited(*lines), strict=True):
        assert (code, err) == (1 if len(args) > 1 else 0, "")
        assert len(out) < 5000


def test_every_hostile_file_is_rejected_in_bounded_memory(folder: Path) -> None:
    """One of them has more tensors than any checkpoint."""
    many = case_holding("model.safetensors", make_valueless_file(f"{i:x}" for i in range(500_001)))
    paths = []
    for i, make in enumerate([*CASES.values(), many]):
        (folder / str(i)).mkdir()
        paths.append(make(folder / str(i)))
    found = run_limited(*(("verify", "gpt2-small", str(path)) for path in paths))
    assert {(code, out, err.count("\n")) for code, out, err in found} == {(2, "", 1)}
    assert found[-1][2].endswith("model.safetensors: header has too many entries (expected at most 500,000)\n")


# ---- what comes from a file reaches every format printable and short


FORMATS = ("table", "markdown", "csv", "json", "latex", "html")
UGLY = "a|b*c_d<script>&\\{}$#%~^[é漢] 'q\""
WRITTEN = UGLY.replace("{}", "{{}}")  # as a pattern


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("command", ["verify", "alone", "why"])
def test_an_unexpected_name_is_shown_in_every_format_and_a_long_one_is_truncated(
    command: str, format: str, folder: Path, run: Runner
) -> None:
    tensors: Tensors = {**load_saved("gpt2").tensors, UGLY: ("F32", (3,)), "long." + "x" * 100_000: ("F32", (5,))}
    write_header(folder / "model.json", tensors)
    (folder / "config.json").write_text(json.dumps(load_saved("gpt2").config), encoding="utf-8")
    done = run(*(() if command == "alone" else (command, "./config.json")), "./model.json", "--format", format)
    assert done.code == (0 if command == "alone" else 1)
    assert is_safe_to_print(done.out)
    assert "<script>" not in done.out or format not in ("html", "markdown")
    if (command, format) == ("verify", "json"):
        assert WRITTEN in [line["pattern"] for line in json.loads(done.out)["lines"]]
    if format != "json":
        assert max(map(len, done.out.splitlines())) < 2500


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("command", ["verify", "alone", "why"])
def test_terminal_escapes_in_a_path_are_escaped(command: str, format: str, folder: Path, run: Runner) -> None:
    path = write_header(folder / f"{ESCAPE.replace('/', '')}.json", load_saved("gpt2").tensors)
    (folder / "config.json").write_text(json.dumps(load_saved("gpt2").config), encoding="utf-8")
    done = run(*(() if command == "alone" else (command, "./config.json")), str(path), "--format", format)
    assert done.code == 0
    assert is_safe_to_print(done.out + done.err)


def test_json_has_the_exact_path(folder: Path, run: Runner) -> None:
    path = write_header(folder / f"{ESCAPE}\U000e0001.json", load_saved("gpt2").tensors)
    (folder / "config.json").write_text(json.dumps(load_saved("gpt2").config), encoding="utf-8")
    assert json.loads(run("verify", "./config.json", str(path), "--json").out)["path"] == str(path)


def is_safe_to_print(text: str) -> bool:
    """Whether a terminal shows the text unchanged."""
    return text.replace("\n", "").isprintable()


@pytest.mark.parametrize("said", [ESCAPE, ["gptq", ESCAPE], {"deep": [ESCAPE]}, 10**25, "x" * 100_000])
def test_the_quantisation_scheme_in_a_config_is_escaped(said: object, folder: Path, run: Runner) -> None:
    config = {
        **load_saved("gpt2").config,
        "quantization_config": {"quant_method": said, "bits": said, "weight_block_size": said},
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    write_file(folder / "model.safetensors", load_saved("gpt2").tensors)
    for command in (("verify", "gpt2-small"), ("why", "gpt2-small"), ()):
        done = run(*command, "./model.safetensors")
        assert is_safe_to_print(done.out + done.err)
        assert len(done.out + done.err) < 6000


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"num_hidden_layers": 10**9}, "tensors (expected at most 1,000,000)"),
        ({"num_hidden_layers": 10**25}, "num_hidden_layers = "),
        ({"model_type": "mixtral", "num_local_experts": 10**9}, "tensors (expected at most 1,000,000)"),
        ({"model_type": ESCAPE}, "model_type"),
    ],
)
def test_a_config_that_is_too_large_is_a_one_line_error(
    sizes: dict[str, Any], says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **sizes}), encoding="utf-8")
    write_header(folder / "model.json", {"a": ("F32", (1,))})
    for command in ("verify", "why"):
        assert says in command_error(capsys, command, "./config.json", "./model.json")
