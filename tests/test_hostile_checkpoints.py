"""Harmful checkpoints through the command line: a one-line error, exit code 2, nothing written, nothing run."""

from __future__ import annotations

import csv
import json
import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from tests.headers import Tensors, load_saved, make_header, total_bytes, write_file, write_header, write_index
from tests.refusing import command_error
from tests.running import Runner

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


# ---- safetensors


def case_header(entries: object, name: str = "model.safetensors", values: int = 0, length: int | None = None) -> Case:
    """A file with a header, or something in its place, and a number of bytes of values."""
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return case_holding(name, struct.pack("<Q", len(text) if length is None else length) + text + bytes(values))


def header_entry(start: int, stop: int, shape: object = (1,), dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


SAFETENSORS: dict[str, Case] = {
    "header of 2^63 bytes": case_header(b"{}", length=2**63),
    "header of 2^64 - 1 bytes": case_header(b"{}", length=2**64 - 1),
    "header longer than its file": case_header({"a": header_entry(0, 4)}, values=4, length=10_000),
    "header of ten million tensors": case_holding("model.safetensors", struct.pack("<Q", 700_000_000) + b'{"a', 10**12),
    "overlapping": case_header({"a": header_entry(0, 8, (2,)), "b": header_entry(4, 12, (2,))}, values=12),
    "behind the end": case_header({"a": header_entry(0, 4), "b": header_entry(4, 2**62, (2**60 - 1,))}, values=8),
    "before the beginning": case_header({"a": header_entry(-4, 0)}, values=4),
    "backwards": case_header({"a": header_entry(4, 0)}, values=4),
    "offsets of 30 digits": case_header({"a": header_entry(0, 10**30, (10**30,))}, values=4),
    "a shape of 2^120 values": case_header({"a": header_entry(0, 4, (2**60, 2**60))}, values=4),
    "a million axes": case_header({"a": header_entry(0, 4, [1] * 1_000_000)}, values=4),
    "nested deeply": case_header(b'{"a":' * 200_000 + b"1" + b"}" * 200_000),
    "lists nested deeply": case_header(b'{"a":' + b"[" * 1_000_000, length=1_000_005),
    "a number of a million digits": case_header(
        b'{"a":{"dtype":"F32","shape":[' + b"9" * 1_000_000 + b'],"data_offsets":[0,4]}}', values=4
    ),
    "a name of terminal escapes": case_header({ESCAPE: header_entry(0, 4)}, values=4),
    "a name of half a character": case_header(
        b'{"\\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', values=4
    ),
    "a type of terminal escapes": case_header({"a": header_entry(0, 4, dtype=ESCAPE)}, values=4),
    "a name twice": case_header(
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        values=4,
    ),
    "a header that is no text": case_header(b'{"\xff\xfe"}'),
    "a saved header of a million axes": case_header({"a": header_entry(0, 4, [1] * 1_000_000)}, name="saved.json"),
}

# ---- GGUF


def case_gguf(*pieces: bytes, tensors: int = 0, pairs: int = 0, version: int = 3) -> Case:
    return case_holding("model.gguf", b"GGUF" + struct.pack("<IQQ", version, tensors, pairs) + b"".join(pieces))


def pack_string(said: str | bytes) -> bytes:
    data = said.encode("utf-8", "surrogatepass") if isinstance(said, str) else said
    return struct.pack("<Q", len(data)) + data


STRING, ARRAY, UINT32 = struct.pack("<I", 8), struct.pack("<I", 9), struct.pack("<I", 4)
LLAMA = pack_string("general.architecture") + STRING + pack_string("llama")


def pack_tensor(name: str, shape: tuple[int, ...] = (4,), type: int = 0, offset: int = 0) -> bytes:
    return pack_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, type, offset)


GGUF: dict[str, Case] = {
    "2^64 - 1 tensors": case_gguf(tensors=2**64 - 1),
    "2^64 - 1 pairs": case_gguf(pairs=2**64 - 1),
    "a text of 2^64 - 1 bytes": case_gguf(struct.pack("<Q", 2**64 - 1) + b"a", pairs=1),
    "an array of 2^64 - 1 numbers": case_gguf(
        pack_string("a") + ARRAY + UINT32 + struct.pack("<Q", 2**64 - 1), pairs=1
    ),
    "an array of 2^64 - 1 texts": case_gguf(pack_string("a") + ARRAY + STRING + struct.pack("<Q", 2**64 - 1), pairs=1),
    "arrays in arrays": case_gguf(pack_string("a") + ARRAY + (ARRAY + struct.pack("<Q", 1)) * 100_000, pairs=1),
    "arrays of many arrays": case_gguf(pack_string("a") + ARRAY + ARRAY + struct.pack("<Q", 2**32), pairs=1),
    "a type that there is not": case_gguf(pack_string("a") + struct.pack("<I", 77), pairs=1),
    "a version that there is not": case_gguf(version=2**31),
    "a tensor behind the end": case_gguf(LLAMA, pack_tensor("a", (2**40,), offset=2**50), tensors=1, pairs=1),
    "2^32 - 1 axes": case_gguf(LLAMA, pack_string("a") + struct.pack("<I", 2**32 - 1), tensors=1, pairs=1),
    "2^248 values": case_gguf(LLAMA, pack_tensor("a", (2**62, 2**62, 2**62, 2**62)), tensors=1, pairs=1),
    "a tensor of a type that there is not": case_gguf(
        LLAMA, pack_tensor("a", type=2**31), bytes(64), tensors=1, pairs=1
    ),
    "a tensor's name of terminal escapes": case_gguf(LLAMA, pack_tensor(ESCAPE), bytes(64), tensors=1, pairs=1),
    "a key of terminal escapes": case_gguf(pack_string(ESCAPE) + STRING + pack_string("a"), pairs=1),
    "a name that is no text": case_gguf(
        LLAMA, pack_string(b"\xff\xfe") + struct.pack("<IQIQ", 1, 4, 0, 0), bytes(64), tensors=1, pairs=1
    ),
    "a name twice": case_gguf(LLAMA, pack_tensor("a"), pack_tensor("a", offset=32), bytes(128), tensors=2, pairs=1),
    "an architecture of terminal escapes": case_gguf(
        pack_string("general.architecture") + STRING + pack_string(ESCAPE),
        pack_tensor("a"),
        bytes(64),
        tensors=1,
        pairs=1,
    ),
    "no alignment": case_gguf(pack_string("general.alignment") + UINT32 + bytes(4), pairs=1),
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


def make_loop(folder: Path) -> Path:
    (folder / "a.safetensors").symlink_to("b.safetensors")
    (folder / "b.safetensors").symlink_to("a.safetensors")
    return folder / "a.safetensors"


def make_folder_loop(folder: Path) -> Path:
    (folder / "loop").symlink_to("loop")
    return folder / "loop" / "model.safetensors"


def make_shard_loop(folder: Path) -> Path:
    make_loop(folder)
    return case_index({"a": "a.safetensors"})(folder)


def make_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "model.safetensors")
    return folder / "model.safetensors"


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
    "links in a circle": make_loop,
    "a folder that is a link to itself": make_folder_loop,
    "a shard in a circle": make_shard_loop,
    "a pipe": make_pipe,
    "a device": make_device,
    "a shard that is a device": make_shard_device,
    "a folder of pickles": make_pickles,
    "a pickle": case_holding("pytorch_model.bin", PICKLE),
    **{f"a pickle called {name}": case_holding(name, PICKLE) for name in NAMES},
    **{f"nothing in {name}": case_holding(name, b"") for name in NAMES},
    **{f"zeros in {name}": case_holding(name, bytes(4096)) for name in NAMES},
    **{f"a terabyte of zeros in {name}": case_holding(name, b"", 2**40) for name in NAMES},
}
CASES = SAFETENSORS | GGUF | OTHERS


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


def test_a_gguf_file_of_another_architecture_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case_holding("llama.gguf", make_gguf())(folder)
    assert command_error(capsys, "verify", "gpt2-small", "./llama.gguf").startswith(
        "llama.gguf: general.architecture = 'llama', "
    )


@pytest.mark.parametrize(
    "case", ["an index that names ..", "an index that names an absolute path", "an index that names .. within"]
)
def test_nothing_from_a_file_outside_the_folder_is_shown(
    case: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = command_error(capsys, "verify", "gpt2-small", str(CASES[case](folder)))
    assert "secret.safetensors" in message
    assert "F32" not in message


@pytest.mark.parametrize("name", ["pytorch_model.bin.index.json", "model.safetensors.index.json"])
def test_an_index_of_pickles_gives_names_and_no_pickle_is_opened(name: str, folder: Path, run: Runner) -> None:
    tensors = load_saved("gpt2").tensors
    (folder / "pytorch_model.bin").write_bytes(PICKLE)
    (folder / "config.json").write_text(json.dumps(load_saved("gpt2").config), encoding="utf-8")
    path = write_index(folder / name, dict.fromkeys(tensors, "pytorch_model.bin"), total_bytes(tensors))
    for command in (("verify", "./config.json"), ("why", "./config.json"), ()):
        done = run(*command, str(path))
        assert (done.code, "Traceback" in done.err) == (0, False)
    assert not (folder / MARKER).exists()


def test_symlinked_shards_of_a_cache_are_followed(folder: Path, run: Runner) -> None:
    """A Hugging Face cache: a snapshot of links to the blobs next to it."""
    blobs, snapshot = folder / "blobs", folder / "snapshots" / "0123456789abcdef"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    write_file(blobs / "3e7d", load_saved("gpt2").tensors)
    (snapshot / "model.safetensors").symlink_to("../../blobs/3e7d")
    (snapshot / "config.json").write_text(json.dumps(load_saved("gpt2").config), encoding="utf-8")
    assert run("verify", f"{snapshot}/config.json", f"{snapshot}/model.safetensors").code == 0
    assert run("why", f"{snapshot}/", f"{snapshot}/").code == 0


# ---- truncated at every byte


def make_gguf() -> bytes:
    data = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + LLAMA + pack_tensor("token_embd.weight", (4, 2))
    return data + bytes(-len(data) % 32) + bytes(4 * 4 * 2)


@pytest.mark.parametrize("name", ["model.safetensors", "saved.json", "model.safetensors.index.json", "model.gguf"])
def test_a_file_truncated_at_any_byte_is_rejected(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tensors: Tensors = {"wte.weight": ("F32", (2, 2)), "wpe.weight": ("BF16", (2,))}
    path = folder / name
    if name.endswith("index.json"):
        write_index(path, {"wte.weight": "a.safetensors"}, 4)
    elif name.endswith("json"):
        write_header(path, tensors)
    elif name.endswith("gguf"):
        case_header(b"", name)(folder).write_bytes(make_gguf())
    else:
        write_file(path, tensors)
    data = path.read_bytes()
    assert [read_exit_code(capsys, "verify", "smollm2-135m", name), read_exit_code(capsys, name)] == [1, 0]
    for stop in range(len(data)):
        path.write_bytes(data[:stop])
        assert name in command_error(capsys, "verify", "smollm2-135m", name)
        if stop % 5 == 0:
            command_error(capsys, name)
            command_error(capsys, "why", "smollm2-135m", name)


def read_exit_code(capsys: pytest.CaptureFixture[str], *args: str) -> int:
    from paramcount.cli import main

    with pytest.raises(SystemExit) as leaving:
        main(list(args))
    capsys.readouterr()
    return int(leaving.value.code or 0)


# ---- however large


def make_valueless_file(names: Iterator[str]) -> bytes:
    """A file of tensors without values."""
    entries = f":{json.dumps(header_entry(0, 0, (0,), 'U8'), separators=(',', ':'))},".join(
        f'"{name}"' for name in names
    )
    text = f"{{{entries}:{json.dumps(header_entry(0, 0, (0,), 'U8'))}}}"
    return struct.pack("<Q", len(text)) + text.encode()


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


@pytest.mark.exhaustive
def test_more_tensors_than_any_checkpoint_has_are_rejected_in_bounded_memory(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(make_valueless_file(f"{i:x}" for i in range(500_001)))
    ((code, out, err),) = run_limited(("verify", "gpt2-small", "./model.safetensors"))
    assert (code, out, err) == (
        2,
        "",
        "error: model.safetensors: header has too many entries (expected at most 500,000)\n",
    )


def test_every_hostile_file_is_rejected_in_bounded_memory(folder: Path) -> None:
    paths = []
    for i, make in enumerate(CASES.values()):
        (folder / str(i)).mkdir()
        paths.append(make(folder / str(i)))
    for (code, out, err), case in zip(
        run_limited(*(("verify", "gpt2-small", str(path)) for path in paths)), CASES, strict=True
    ):
        assert (code, out, err.count("\n")) == (2, "", 1), case


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
    if command == "verify":
        assert WRITTEN in undo_escapes(done.out, format)
    if format != "json":
        assert max(map(len, done.out.splitlines())) < 2500


def undo_escapes(text: str, format: str) -> str:
    """The output in a format, with the escapes undone that UGLY contains."""
    from html import unescape

    match format:
        case "json":
            return "\n".join(line["pattern"] for line in json.loads(text)["lines"])
        case "csv":
            return "\n".join(field for row in csv.reader(text.splitlines()) for field in row)
        case "html":
            return unescape(text)
        case "markdown":
            return unescape(text.replace("\\\\", "\0").replace("\\", "").replace("\0", "\\"))
        case "latex":
            for plain in "&%$#_{}":
                text = text.replace(f"\\{plain}", plain)
            names = {
                "textbackslash{}": "",
                "textasciitilde{}": "~",
                "textasciicircum{}": "^",
                "textless{}": "<",
                "textgreater{}": ">",
                "textbar{}": "|",
            }
            for name, plain in names.items():
                text = text.replace(f"\\{name}", plain or "\\")
            return text
        case _:
            return " ".join(text.split())


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


MANY = 400_000 if "EXAMPLES" in os.environ else 5_000


def test_many_unexpected_tensors_are_truncated_in_text_and_complete_in_json_and_csv(folder: Path, run: Runner) -> None:
    text = json.dumps(
        make_header({**load_saved("gpt2").tensors, **{f"{i:x}x": ("U8", (i % 7 + 1,)) for i in range(MANY)}}),
        separators=(",", ":"),
    )
    (folder / "model.json").write_text(text, encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(load_saved("gpt2").config), encoding="utf-8")
    for command in ("verify", "why"):
        done = run(command, "./config.json", "./model.json")
        assert (done.code, done.err) == (1, "")
        assert len(done.out.splitlines()) < 60
        assert f"{MANY - 20 if command == 'verify' else MANY - 5:,} more" in done.out
    found = json.loads(run("verify", "./config.json", "./model.json", "--json").out)
    strange = {line["pattern"] for line in found["lines"] if line["finding"] == "unexpected"}
    assert strange == {f"{i:x}x" for i in range(MANY)}
    rows = list(csv.DictReader(run("verify", "./config.json", "./model.json", "--csv").out.splitlines()))
    assert {row["pattern"] for row in rows if row["finding"] == "unexpected"} == strange


# ---- hostile configs


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"num_hidden_layers": 10**9}, "has 10,000,000,003 tensors (expected at most 1,000,000)"),
        ({"num_hidden_layers": 10**25}, "num_hidden_layers = "),
        ({"vocab_size": -1}, "vocab_size = -1"),
        (
            {"model_type": "mixtral", "num_local_experts": 10**9, "num_experts_per_tok": 2},
            "tensors (expected at most 1,000,000)",
        ),
        ({"model_type": ESCAPE}, "model_type"),
    ],
)
def test_a_config_that_is_too_large_is_a_one_line_error(
    sizes: dict[str, Any], says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heads = {
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "hidden_size": 64,
        "intermediate_size": 128,
        "vocab_size": 1000,
        "num_hidden_layers": 2,
    }
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **heads, **sizes}), encoding="utf-8")
    write_header(folder / "model.json", load_saved("mistral").tensors)
    for command in ("verify", "why"):
        assert says in command_error(capsys, command, "./config.json", "./model.json")
