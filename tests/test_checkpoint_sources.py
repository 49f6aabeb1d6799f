"""Opening a checkpoint: which files a path stands for, their contents, and contradictions between them."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import gguf
import numpy as np
import pytest
import safetensors.numpy

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.checkpoints.opening import indices, sampling, shards
from paramcount.checkpoints.opening import locate as sources
from paramcount.checkpoints.opening.locate import is_checkpoint, open_checkpoint
from paramcount.checkpoints.opening.sampling import have_same_samples
from paramcount.errors import ParamcountError, join_place
from tests.gguf_writing import finish_file
from tests.headers import write_header, write_index
from tests.refusing import assert_one_line, error_of

ACCEPTED = "(expected a .safetensors or .gguf file, a shard index, a saved header, or a directory with one of them)"
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
INDEX = "model.safetensors.index.json"
PARTS: list[dict[str, Any]] = [
    {"embed.weight": np.arange(12, dtype=np.float32).reshape(4, 3), "layers.0.weight": np.ones((2, 3), np.float16)},
    {"layers.1.weight": np.zeros((2, 3), np.float16), "head.weight": np.arange(12, dtype=np.float32).reshape(4, 3)},
]
TOTAL = 48 + 12 + 12 + 48  # bytes of these values
MAP = {"embed.weight": FIRST, "layers.0.weight": FIRST, "layers.1.weight": SECOND, "head.weight": SECOND}


def write_sharded(
    folder: Path,
    parts: Sequence[Mapping[str, Any]] = PARTS,
    weight_map: Mapping[str, str] = MAP,
    total_size: object = TOTAL,
) -> Path:
    """Files and their index; no index if it is empty."""
    folder.mkdir(exist_ok=True)
    for i, part in enumerate(parts):
        safetensors.numpy.save_file(dict(part), folder / f"model-{i + 1:05}-of-{len(parts):05}.safetensors")
    if weight_map:
        (folder / INDEX).write_text(
            json.dumps({"metadata": {"total_size": total_size}, "weight_map": weight_map}, indent=2)
        )
    return folder


def write_saved(path: Path, *names: str) -> Path:
    """A file with a tensor per name."""
    safetensors.numpy.save_file({name: np.ones(2, np.float32) for name in names or ["a"]}, path)
    return path


def write_split_gguf(folder: Path, name: str, tensors: int, per_file: int = 0) -> None:
    """GGUF files with these numbers of tensors, as the gguf package writes and numbers them."""
    writer = gguf.GGUFWriter(folder / name, "llama", split_max_tensors=per_file)
    writer.add_block_count(7)
    for i in range(tensors):
        writer.add_tensor(f"blk.{i}.attn_q.weight", np.full((2, 32), i, np.float32))
    finish_file(writer)


def opening_error(path: Path) -> str:
    return error_of(open_checkpoint, path)


def list_faults(path: Path) -> list[str]:
    found = list(open_checkpoint(path).faults)
    for fault in found:
        assert_one_line(fault)
    return found


def list_shapes(checkpoint: Checkpoint) -> dict[str, tuple[int, ...] | None]:
    return {name: held.shape for name, held in checkpoint.tensors.items()}


# ---- which files a path stands for


@pytest.mark.parametrize("named", ["", INDEX, FIRST, SECOND])
@pytest.mark.parametrize("indexed", [True, False])
def test_a_folder_an_index_and_any_shard_open_all_files(named: str, indexed: bool, tmp_path: Path) -> None:
    folder = write_sharded(tmp_path, weight_map=MAP if indexed else {})
    if named == INDEX and not indexed:
        assert opening_error(folder / named) == f"{folder / named} cannot be read: No such file or directory"
        return
    found = open_checkpoint(folder / named)
    assert list_shapes(found) == {name: values.shape for part in PARTS for name, values in part.items()}
    assert [(file.name, file.path) for file in found.files] == [(FIRST, folder / FIRST), (SECOND, folder / SECOND)]
    assert (found.faults, found.total_size) == ((), TOTAL if indexed else None)
    by = f", listed in {INDEX}" if indexed else ""
    assert found.notes == (
        (f"{named} is 1 of 2 files; paramcount read all of them{by}",) if named in (FIRST, SECOND) else ()
    )


def test_the_number_of_files_may_be_written_with_more_digits_than_theirs(tmp_path: Path) -> None:
    for i in (1, 2):  # as DeepSeek-V3's are
        write_saved(tmp_path / f"model-{i:05}-of-000002.safetensors", f"t{i}")
    assert list(open_checkpoint(tmp_path / "model-00002-of-000002.safetensors").tensors) == ["t1", "t2"]


def test_files_may_be_numbered_from_0(tmp_path: Path) -> None:
    for i in (0, 1):
        write_saved(tmp_path / f"model-{i:05}-of-00002.safetensors", f"t{i}")
    assert list_faults(tmp_path) == []
    (tmp_path / "model-00001-of-00002.safetensors").unlink()
    assert list_faults(tmp_path) == ["model-00001-of-00002.safetensors is missing"]


def test_a_variant_s_numbered_file_finds_the_variant_s_index(tmp_path: Path) -> None:
    name = "model.fp16-00001-of-00001.safetensors"
    write_saved(tmp_path / name)
    write_saved(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors.index.fp16.json").write_text(
        json.dumps({"metadata": {"total_size": 9}, "weight_map": {"a": name}})
    )
    found = open_checkpoint(tmp_path / name)
    assert found.faults == ("the index says total_size 9, but the tensors take 8 bytes",)
    assert found.notes == ()


def test_a_shard_that_its_index_does_not_list_opens_its_own_family(tmp_path: Path) -> None:
    write_sharded(tmp_path)
    write_saved(tmp_path / "model-00001-of-00001.safetensors", "alone")
    assert list(open_checkpoint(tmp_path / "model-00001-of-00001.safetensors").tensors) == ["alone"]


def test_links_into_the_blobs_of_a_cache_are_followed(tmp_path: Path) -> None:
    repository = tmp_path / "models--org--name"
    blobs, snapshot = repository / "blobs", repository / "snapshots" / "0123abcd"
    snapshot.mkdir(parents=True)
    write_sharded(blobs)
    (blobs / "config").write_text(json.dumps({"model_type": "llama", "quantization_config": {"quant_method": "fp8"}}))
    for blob, name in ((FIRST, FIRST), (SECOND, SECOND), (INDEX, INDEX), ("config", "config.json")):
        digest = f"{abs(hash(blob)):064x}"
        (blobs / blob).rename(blobs / digest)
        (snapshot / name).symlink_to(os.path.join("..", "..", "blobs", digest))
    for path in (snapshot, snapshot / INDEX, snapshot / SECOND, repository):
        found = open_checkpoint(path)
        assert found.has_all_shapes and len(found.tensors) == 4 and found.faults == ()
        assert found.quantization_config == {"quant_method": "fp8"}
    digest = os.path.basename(os.readlink(snapshot / FIRST))
    assert set(open_checkpoint(blobs / digest).tensors) == set(PARTS[0])
    (snapshot / SECOND).unlink()
    (snapshot / SECOND).symlink_to("../../blobs/none")
    assert list_faults(snapshot) == [f"{SECOND} is a broken link: it should contain 2 tensors"]


ONE_OF_THEM = "(expected the path of one of them)"
LORAS = [f"lora_{i}.safetensors" for i in range(9)]
FOLDERS: list[tuple[list[str], str]] = [
    ([], f"contains no checkpoint: it is empty {ACCEPTED}"),
    (["shards.safetensors/"], f"contains no checkpoint: only directories {ACCEPTED}"),
    (["a/", "config.json"], f"contains no checkpoint: only config.json {ACCEPTED}"),
    (
        ["config.json", "pytorch_model.bin"],
        f"contains no checkpoint: only pytorch_model.bin (paramcount never loads pickles) {ACCEPTED}",
    ),
    ([INDEX, "a.safetensors"], f"contains 2 checkpoints: {INDEX}, a.safetensors {ONE_OF_THEM}"),
    ([INDEX, "b.safetensors", "a.safetensors"], f"contains 3 checkpoints: {INDEX}, a.safetensors, b.safetensors"),
    ([FIRST, SECOND, "n.safetensors"], f"contains 2 checkpoints: {FIRST}, n.safetensors {ONE_OF_THEM}"),
    (["m.gguf", "model.safetensors"], f"contains 2 checkpoints: m.gguf, model.safetensors {ONE_OF_THEM}"),
    (["m-Q4_K_M.gguf", "m-Q8_0-00001-of-00002.gguf", "m-Q8_0-00002-of-00002.gguf"],
     f"contains 2 checkpoints: m-Q4_K_M.gguf, m-Q8_0-00001-of-00002.gguf {ONE_OF_THEM}"),
    (LORAS, f"contains 9 checkpoints: {', '.join(LORAS[:6])} and 3 more {ONE_OF_THEM}"),
    ([f"m{i}.safetensors.index.json" for i in range(9)], "contains 9 indices: m0.safetensors.index.json, "),
]  # fmt: skip


@pytest.mark.parametrize(("names", "message"), FOLDERS, ids=[message[:60] for _, message in FOLDERS])
def test_a_folder_with_no_checkpoint_or_several_says_what_it_contains(
    names: list[str], message: str, tmp_path: Path
) -> None:
    for name in names:
        if name.endswith("/"):
            (tmp_path / name).mkdir()
        else:
            (tmp_path / name).write_text(json.dumps({"weight_map": {"t": FIRST}}) if name == INDEX else "")
    assert opening_error(tmp_path).startswith(f"{tmp_path} {message}")


def test_pickles_next_to_safetensors_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin.index.json").write_text('{"weight_map": {"a": "pytorch_model-00001-of-00001.bin"}}')
    assert open_checkpoint(tmp_path).format == "pytorch"
    write_saved(tmp_path / "model.safetensors")
    (tmp_path / "optimizer.pt").touch()
    assert open_checkpoint(tmp_path).format == "safetensors"


def test_a_folder_with_too_many_files_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sharded(tmp_path)
    monkeypatch.setattr(sources, "MOST_ENTRIES", 3)
    assert open_checkpoint(tmp_path).faults == ()
    (tmp_path / "config.json").touch()
    assert opening_error(tmp_path) == f"{tmp_path} contains more than 3 files (expected a checkpoint directory)"


def test_every_file_read_is_reported_to_watch(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    open_checkpoint(write_sharded(tmp_path), lambda done, all: seen.append((done, all)))
    assert seen == [(0, 2), (1, 2), (2, 2)]


LOOKS: list[tuple[str, str | None, bool]] = [
    ("model.safetensors", None, True), ("MODEL.SAFETENSORS", None, True), ("m.gguf", None, True),
    ("pytorch_model.bin", None, True), ("x.pth", None, True),
    (INDEX, None, True), ("pytorch_model.bin.index.json", None, True),
    ("model.safetensors.index.fp16.json", None, True),
    ("config.json", None, False), ("x.yaml", None, False), ("gpt2", None, False), ("-", None, False),
    ("a\0.json", None, False),
    ("config.json", '{"model_type": "llama", "torch_dtype": "bfloat16", "dtype": "float16"}', False),
    ("header.json", '{"a": {"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', True),
    ("header.json", '{"__metadata__": {}, "a": {"data_offsets" : [0, 4]', True),
    ("i.json", '{"metadata": {}, "weight_map" : {', True), ("w.json", '{"weight_map": 1}', False),
    ("other.json", "\xff\x00", False), ("empty.json", "", False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), LOOKS, ids=[f"{name} {text or ''}" for name, text, _ in LOOKS])
def test_a_checkpoint_is_distinguished_from_a_config(
    name: str, text: str | None, expected: bool, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    assert is_checkpoint(tmp_path / name) is expected


def test_a_folder_with_a_pickle_is_a_rejected_checkpoint_and_not_a_config(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.BIN").touch()
    assert is_checkpoint(tmp_path)
    (tmp_path / "config.json").touch()
    assert not is_checkpoint(tmp_path) and is_checkpoint(tmp_path, with_config=True)


def test_a_folder_is_a_checkpoint_if_it_has_shards_and_no_config(tmp_path: Path) -> None:
    assert not is_checkpoint(tmp_path)
    write_sharded(tmp_path)
    assert is_checkpoint(tmp_path)
    (tmp_path / "config.json").touch()
    assert not is_checkpoint(tmp_path)
    assert is_checkpoint(tmp_path, with_config=True)
    (tmp_path / "repository" / "snapshots").mkdir(parents=True)
    assert is_checkpoint(tmp_path / "repository", with_config=True) and not is_checkpoint(tmp_path / "repository")


# ---- indices


def test_files_that_git_lfs_did_not_fetch_are_missing(tmp_path: Path) -> None:
    write_sharded(tmp_path)
    for name in (SECOND, FIRST):
        (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
        if name == SECOND:
            assert list_faults(tmp_path) == [
                f"{SECOND} is a Git LFS pointer (fetch it with git lfs pull): it should contain 2 tensors"
            ]
    found = open_checkpoint(tmp_path)
    assert len(found.tensors) == 4 and not found.has_all_shapes and found.faults == ()
    assert opening_error(
        write_saved(tmp_path / "one.safetensors").rename(tmp_path / FIRST).parent / SECOND.replace("00002", "00003", 1)
    ).endswith("No such file or directory")


TWICE: dict[str, Any] = {"parts": [{**PARTS[0], "head.weight": np.zeros((5, 5), np.float32)}, PARTS[1]]}
IN_FIRST = {name: file for name, file in MAP.items() if file == FIRST}
UNNAMED = {name: file for name, file in MAP.items() if name != "layers.1.weight"}
# (options of write_sharded, {file: its new name, or "" if it is gone}, faults)
LIES: dict[str, tuple[dict[str, Any], dict[str, str], list[str]]] = {
    "moved": (
        {"weight_map": MAP | {"head.weight": FIRST}},
        {},
        [f"1 tensor is in {SECOND}, but the index says {FIRST}: head.weight"],
    ),
    "nowhere": (
        {"weight_map": MAP | {f"layers.{i}.bias": SECOND for i in range(4)}},
        {},
        [f"4 tensors are in no file, but the index says {SECOND}: layers.{{0-3}}.bias"],
    ),
    "unnamed": ({"weight_map": UNNAMED}, {}, [f"1 tensor is in {SECOND}, but not in the index: layers.1.weight"]),
    "twice": (TWICE, {}, [f"1 tensor is in both {FIRST} and {SECOND}: head.weight"]),
    "lacking": (
        {"weight_map": IN_FIRST},
        {},
        [
            f"{SECOND} is not in the index",
            f"2 tensors are in {SECOND}, but not in the index: head.weight, layers.1.weight",
        ],
    ),
    "lacking and gone": (
        {
            "parts": PARTS[:1],
            "weight_map": dict.fromkeys(PARTS[0], "model-00001-of-00003.safetensors"),
            "total_size": 60,
        },
        {"model-00001-of-00001.safetensors": "model-00001-of-00003.safetensors"},
        ["model-00002-of-00003.safetensors, model-00003-of-00003.safetensors are not in the index"],
    ),
    "larger": ({"total_size": TOTAL + 1}, {}, ["the index says total_size 121, but the tensors take 120 bytes"]),
    "one of three": (
        {"parts": [*PARTS, {"b": np.ones(1)}], "weight_map": {}},
        {"model-00002-of-00003.safetensors": ""},
        ["model-00002-of-00003.safetensors is missing"],
    ),
    "one of many": (
        {"parts": PARTS[:1], "weight_map": {}},
        {"model-00001-of-00001.safetensors": "model-00007-of-99999.safetensors"},
        [", ".join(f"model-{i:05}-of-99999.safetensors" for i in (1, 2, 3, 4)) + " and 99,994 more are missing"],
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_contradictions_between_files_are_reported(lie: str, tmp_path: Path) -> None:
    options, renamed, expected = LIES[lie]
    write_sharded(tmp_path, **options)
    for old, new in renamed.items():
        (tmp_path / old).rename(tmp_path.parent / "gone" if not new else tmp_path / new)
    assert list_faults(tmp_path) == expected


def test_the_index_decides_which_of_two_tensors_with_one_name_is_used(tmp_path: Path) -> None:
    write_sharded(tmp_path, **TWICE)
    assert open_checkpoint(tmp_path).tensors["head.weight"][:3] == (SECOND, "F32", (4, 3))
    (tmp_path / INDEX).unlink()
    assert open_checkpoint(tmp_path).tensors["head.weight"][:3] == (FIRST, "F32", (5, 5))


def test_many_contradictions_are_reported_in_few_lines(tmp_path: Path) -> None:
    files = [f"model-{i:05}-of-00030.safetensors" for i in range(1, 31)]
    for i, file in enumerate(files):
        write_saved(tmp_path / file, *(f"w{i}_{j}.{'x' * 150}" for j in range(9)))
    weight_map = {f"{'n' * 200}{i}_{j}": file for i, file in enumerate(files) for j in range(9)}
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    found = list_faults(tmp_path)
    assert len(found) == 42
    assert found[20] == found[41] == "and 10 more like this"
    assert found[0].startswith("9 tensors are in no file, but the index says model-00001-of-00030.safetensors: nnn")
    assert found[0].endswith("n0_3 and 5 more")
    assert found[21].startswith("9 tensors are in model-00001-of-00030.safetensors, but not in the index: w0_")


def test_names_of_files_are_printed_safely(tmp_path: Path) -> None:
    name = "m\x1b[31m-00001-of-00002.safetensors"
    write_saved(tmp_path / name)
    found = open_checkpoint(tmp_path / name)
    assert found.faults == ("m\\x1b[31m-00002-of-00002.safetensors is missing",)
    assert found.notes == ("m\\x1b[31m-00001-of-00002.safetensors is 1 of 2 files; the others are missing",)
    write_saved(tmp_path / name.replace("1-of", "2-of"))
    assert list_faults(tmp_path) == [
        "1 tensor is in both m\\x1b[31m-00001-of-00002.safetensors and m\\x1b[31m-00002-of-00002.safetensors: a"
    ]


def test_the_number_of_files_read_is_at_most_the_number_present(tmp_path: Path) -> None:
    names = [f"m-{i:06}-of-100000.safetensors" for i in (1, 2)]
    for i, name in enumerate(names):
        write_saved(tmp_path / name, f"h.{i}")
    found = open_checkpoint(tmp_path / names[0])
    assert found.notes == (f"{names[0]} is 1 of 100,000 files; paramcount read the 2 that are present",)
    assert any("and 99,994 more are missing" in fault for fault in found.faults)


def test_a_bool_may_count_as_one_bit(tmp_path: Path) -> None:
    """dtype_byte_size of transformers before 4.50 gives 1 / 8."""
    mask = {"mask": np.ones((4, 4), bool), "a": np.ones(1, np.float32)}
    name = "model-00001-of-00001.safetensors"
    wrong = ["the index says total_size 7, but the tensors take 20 bytes"]
    for total, expected in ((20, []), (6.0, []), (6, []), (7, wrong)):
        assert list_faults(write_sharded(tmp_path, [mask], dict.fromkeys(mask, name), total)) == expected


@pytest.mark.parametrize("said", [None, {}, {"total_size": None}, {"total_parameters": 7, "format": "pt"}])
def test_an_index_may_omit_total_size(said: object, tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(json.dumps({"metadata": said, "weight_map": {"a": "model.safetensors"}}))
    assert open_checkpoint(tmp_path / INDEX).total_size is None


SHARDS = "(expected a .safetensors or .bin file in the directory of the index)"
NAMES = [
    "../model.safetensors", "..", "/etc/model.safetensors", "a/../../model.safetensors", "..\\model.safetensors",
    "a\\b.safetensors", "C:model.safetensors",
    "c:/model.safetensors", "\\\\host\\model.safetensors", "a\0.safetensors", "\x1b[31m.safetensors", "", ".",
    "./model.safetensors", "a//b.safetensors", "/", "a/",
    "model.json", "model.gguf", "config", "\u202emodel.safetensors",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_an_index_may_only_list_shards_in_its_directory(name: str, tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"good": "model.safetensors", "t": name}}))
    message = opening_error(tmp_path / INDEX)
    assert message.startswith(f"{tmp_path / INDEX}: weight_map: tensor t is in file ")
    assert message.endswith(SHARDS)


def test_shards_may_be_in_subdirectories_of_their_index(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write_saved(tmp_path / "sub" / "model.safetensors")
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": "sub/model.safetensors"}}))
    found = open_checkpoint(tmp_path / INDEX)
    assert {found.tensors["a"].file, found.files[0].name} == {"sub/model.safetensors"}
    assert found.faults == ()


ONE = '"weight_map": {"a": "m.safetensors"}'
METADATA = {
    "[]": " contains [] (expected a JSON object)",
    '"x"': " contains 'x' (expected a JSON object)",
    **{
        f'{{"total_size": {text}}}': f".total_size = {text} (expected a number of bytes)".replace('"', "'")
        for text in ('"120"', "1.5", "-1", "true", "9223372036854775808")
    },
    '{"total_size": 1e400}': ": 1e400 is too large (expected a finite number)",
    '{"total_size": NaN}': ": NaN is not allowed (expected a finite number)",
    '{"total_size": 1, "total_size": 1}': ": duplicate key 'total_size'",
    f'{{"x": "{"y" * 70_000}"}}': " is invalid JSON or longer than 65,536 characters (expected a checkpoint index)",
}
WRONG: list[tuple[str, str]] = [
    ('{"weight_map": {}}', "weight_map is empty (expected a file for each tensor)"),
    ('{"weight_map": {"a": 1}}', "invalid JSON at character 21 (expected a string in quotes)"),
    ('{"weight_map": {"a": "m.safetensors"', "invalid JSON: unexpected end of file (expected ,)"),
    ("{" + ONE + "} x", "unexpected text at character 39 (expected nothing after the JSON object)"),
    ("{" + ONE + ", " + ONE + "}", "duplicate name 'weight_map'"),
    ('{"weight_map": {"a": "m.safetensors", "a": "m.safetensors"}}', "duplicate name 'a'"),
    ('{"weight_map": {"\\u001b[31m": "m.safetensors"}}', r"invalid name '\x1b[31m' (expected printable characters)"),
    (
        '{"weight_map": {"a": "m.safetensors", "b": "m.bin"}}',
        "weight_map lists both safetensors files and pickles (expected files of one kind)",
    ),
    (
        '{"other": ' + "[" * 60_000 + ", " + ONE + "}",
        "other is invalid JSON or longer than 65,536 characters (expected a checkpoint index)",
    ),
    (
        "{" + "".join(f'"{i}": 0, ' for i in range(17)) + ONE + "}",
        "has more than 16 keys besides weight_map (expected a checkpoint index)",
    ),
    ('{"model_type": "llama"}', f"is neither a shard index nor a saved header {ACCEPTED}"),
    ("", f"is neither a shard index nor a saved header {ACCEPTED}"),
    ("[" * 100_000, f"is neither a shard index nor a saved header {ACCEPTED}"),
    ("[" * 100_000 + '"weight_map": {', "invalid JSON at character 0 (expected {)"),
    *((f'{{"metadata": {text}, {ONE}}}', f"metadata{message}") for text, message in METADATA.items()),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[message[:60] for _, message in WRONG])
def test_an_invalid_index_is_a_one_line_error(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(text)
    assert opening_error(tmp_path / INDEX) == join_place(tmp_path / INDEX, message)
    assert opening_error(tmp_path) == join_place(tmp_path / INDEX, message)


HOSTILE = {
    "lists beside the map": '{"metadata": {"a": ' + "[[]," * (1 << 16) + ', "weight_map": {"a": "b.safetensors"}}',
    "a file": '{"weight_map": {"a": "' + "b" * (1 << 18) + '.json"}}',
    "numbers in a file's name": '{"weight_map": {"a": "' + "-00001-of-00002" * (1 << 14) + '.safetensors"}}',
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_index_takes_little_more_memory_than_its_length(kind: str, tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(HOSTILE[kind])
    tracemalloc.start()
    try:
        assert opening_error(tmp_path / INDEX)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(HOSTILE[kind]) + (1 << 20)
    finally:
        tracemalloc.stop()


def test_an_index_with_too_many_bytes_names_or_files_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / INDEX
    path.touch()
    os.truncate(path, (32 << 20) + 1)
    assert opening_error(path) == f"{path} is too large {ACCEPTED[:-1]} of at most 33,554,432 bytes)"
    path.write_text(json.dumps({"weight_map": {f"t{i}": f"{i}.safetensors" for i in range(4)}}))
    assert len(open_checkpoint(path).tensors) == 4
    with monkeypatch.context() as patch:
        patch.setattr(indices, "MOST_FILES", 3)
        assert opening_error(path) == f"{path}: weight_map lists more than 3 files (expected at most 3)"
    with monkeypatch.context() as patch:
        patch.setattr("paramcount.formats.piecewise_json.MOST_MEMBERS", 3)
        assert opening_error(path) == f"{path} has too many entries (expected at most 3)"


def test_limits_apply_to_all_files_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sharded(tmp_path)
    monkeypatch.setattr(shards, "MOST_TENSORS", 4)
    assert len(open_checkpoint(tmp_path).tensors) == 4
    monkeypatch.setattr(shards, "MOST_TENSORS", 3)
    assert opening_error(tmp_path) == f"{tmp_path} has more than 3 tensors in total (expected at most 3)"
    (tmp_path / SECOND).unlink()
    assert opening_error(tmp_path) == f"{tmp_path} has more than 3 tensors in total (expected at most 3)"
    monkeypatch.undo()
    monkeypatch.setattr(shards, "MOST_HEADERS", 100)
    assert opening_error(tmp_path) == f"{tmp_path} has headers of more than 100 bytes in total (expected at most 100)"


@pytest.mark.parametrize("is_index", [True, False])
def test_an_index_or_a_saved_header_truncated_at_any_byte_is_rejected(is_index: bool, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    if is_index:
        write_index(path, {"a": "m.safetensors"}, 4)
    else:
        write_header(path, {"a": ("F32", (2, 2)), "b": ("BF16", (2,))})
    data = path.read_bytes()
    assert open_checkpoint(path).faults == ()
    for stop in range(len(data)):
        path.write_bytes(data[:stop])
        assert opening_error(path).startswith(str(path))


# ---- pickles


@pytest.mark.parametrize("ending", [".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".zip", ".PT"])
def test_a_pickle_is_rejected_by_its_name(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{ending}"
    os.mkfifo(path)  # whoever opened it would wait for ever
    assert opening_error(path) == f"{path} is a pickle ({ending.lower()}), which paramcount never loads {ACCEPTED}"


def test_an_index_of_pickles_gives_names_and_opens_none(tmp_path: Path) -> None:
    names = [f"pytorch_model-{i:05}-of-00003.bin" for i in (1, 2)]
    for name in names:
        os.mkfifo(tmp_path / name)
    path = tmp_path / "pytorch_model.bin.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 4}, "weight_map": dict(zip("ab", names))}))
    found = open_checkpoint(path)
    assert (found.format, found.total_size, list_shapes(found)) == ("pytorch", 4, {"a": None, "b": None})
    assert [(file.name, file.size) for file in found.files] == [(name, None) for name in names]
    assert found.faults == ("pytorch_model-00003-of-00003.bin is not in the index",)


# ---- saved headers


def test_a_saved_header_gives_all_but_the_values(tmp_path: Path) -> None:
    whole = safetensors.numpy.save(PARTS[0], metadata={"format": "pt"})
    header = whole[8 : 8 + int.from_bytes(whole[:8], "little")]
    path = tmp_path / "header.json"
    for text in (header, json.dumps(json.loads(header), indent=1).encode(), b"\n" + header):
        path.write_bytes(text)
        found = open_checkpoint(path)
        assert list_shapes(found) == {name: values.shape for name, values in PARTS[0].items()}
        assert sum(held.size or 0 for held in found.tensors.values()) == 60
        assert (found.format, found.faults) == ("safetensors", ())
        assert [(file.name, file.size) for file in found.files] == [("header.json", None)]
    path.write_bytes(header.replace(b"F16", b"F61"))
    assert opening_error(path).startswith(f"{path}: tensor layers.0.weight: dtype = 'F61' (expected ")
    path.write_bytes(header[:-20])
    assert opening_error(path).startswith(f"{path}: ")
    path.write_bytes(whole)
    assert opening_error(path) == f"{path} is a safetensors file {ACCEPTED}"


# ---- GGUF


@pytest.mark.parametrize("named", ["", "m-00001-of-00003.gguf", "m-00003-of-00003.gguf"])
def test_gguf_files_split_by_the_package_are_joined(named: str, tmp_path: Path) -> None:
    write_split_gguf(tmp_path, "m.gguf", 5, 2)
    found = open_checkpoint(tmp_path / named)
    assert [file.name for file in found.files] == [f"m-{i:05}-of-00003.gguf" for i in (1, 2, 3)]
    assert list_shapes(found) == {f"blk.{i}.attn_q.weight": (2, 32) for i in range(5)}
    assert (found.format, found.faults) == ("gguf", ())
    assert found.metadata["general.architecture"] == "llama" and found.metadata["llama.block_count"] == 7
    assert found.metadata["split.no"] == 0  # what several files say, as the first says it
    for file in found.files:
        whole = file.path.read_bytes()
        held = {name: it for name, it in found.tensors.items() if it.file == file.name}
        assert (file.size, file.before) == (len(whole), len(whole) - 256 * len(held))
        for name, it in held.items():
            assert whole[it.start : it.start + 256] == np.full(64, int(name.split(".")[1]), np.float32).tobytes()  # type: ignore[operator]
    assert found.notes == ((f"{named} is 1 of 3 files; paramcount read all of them",) if named else ())


def test_gguf_files_that_do_not_belong_together_are_reported(tmp_path: Path) -> None:
    one, other, third = (f"m-{i:05}-of-00003.gguf" for i in (1, 2, 3))
    write_split_gguf(tmp_path, "m.gguf", 5, 2)
    (tmp_path / other).rename(tmp_path / "x")
    assert list_faults(tmp_path / one) == [f"{other} is missing"]
    (tmp_path / third).rename(tmp_path / other)
    (tmp_path / "x").rename(tmp_path / third)
    assert list_faults(tmp_path / one) == [
        f"{other}: its header says file 3 of 3, its name says file 2 of 3",
        f"{third}: its header says file 2 of 3, its name says file 3 of 3",
    ]
    (tmp_path / third).rename(tmp_path / "whole.gguf")
    assert list_faults(tmp_path / "whole.gguf") == [
        "whole.gguf: its header says file 2 of 3, its name says a single file"
    ]
    write_split_gguf(tmp_path, "n.gguf", 6, 2)
    (tmp_path / third.replace("m", "n", 1)).rename(tmp_path / third)
    (tmp_path / other.replace("m", "n", 1)).rename(tmp_path / other)
    assert list_faults(tmp_path / one) == [f"{one}: its header says 5 tensors in total, but there are 6"]
    (tmp_path / one).unlink()
    write_split_gguf(tmp_path, one, 2)
    assert list_faults(tmp_path / one) == [f"{one}: its header says a single file, its name says file 1 of 3"]


# ---- what stands beside

GPTQ: dict[str, Any] = {"bits": 4, "group_size": 128, "desc_act": False}
AWQ: dict[str, Any] = {"w_bit": 4, "q_group_size": 128, "zero_point": True, "version": "GEMM"}
FP8, MXFP4 = ({"quantization_config": {"quant_method": name}} for name in ("fp8", "mxfp4"))
BESIDE: list[tuple[dict[str, Any], dict[str, Any] | None]] = [
    ({}, None),
    ({"config.json": {"model_type": "llama"}}, None),
    ({"config.json": FP8}, {"quant_method": "fp8"}),
    ({"config.json": {"quantization_config": None, "text_config": MXFP4}}, {"quant_method": "mxfp4"}),
    ({"config.json": {"text_config": []}, "quantize_config.json": GPTQ}, {"quant_method": "gptq", **GPTQ}),
    ({"quantize_config.json": GPTQ | {"quant_method": "marlin"}}, GPTQ | {"quant_method": "marlin"}),
    ({"quant_config.json": AWQ}, {"quant_method": "awq", **AWQ}),
    ({"config.json": FP8, "quant_config.json": AWQ}, {"quant_method": "fp8"}),
]


@pytest.mark.parametrize(("beside", "expected"), BESIDE)
def test_the_quantisation_config_is_read_from_the_same_folder(
    beside: dict[str, Any], expected: object, tmp_path: Path
) -> None:
    file = write_saved(tmp_path / "model.safetensors")
    for name, said in beside.items():
        (tmp_path / name).write_text(json.dumps(said))
    for path in (tmp_path, file):
        assert (open_checkpoint(path).quantization_config, open_checkpoint(path).faults) == (expected, ())


def test_a_config_next_to_gguf_files_is_ignored(tmp_path: Path) -> None:
    write_split_gguf(tmp_path, "m.gguf", 1)
    (tmp_path / "config.json").write_text(json.dumps(FP8))
    assert open_checkpoint(tmp_path).quantization_config is None


def test_an_unreadable_config_is_one_fault(tmp_path: Path) -> None:
    write_saved(tmp_path / "model.safetensors")
    config = tmp_path / "config.json"
    for text, message in (
        ("{", "config.json: line 1 column 2: invalid JSON: unexpected end of file (expected a JSON object)"),
        ("[" * 100_000, "config.json is nested too deeply (expected at most 100 levels)"),
        ('{"quantization_config": 4}', "config.json: quantization_config = 4 (expected a JSON object)"),
        ('{"a": 1, "a": 1}', "config.json: duplicate key 'a'"),
    ):
        config.write_text(text)
        (tmp_path / "quant_config.json").write_text(json.dumps(AWQ))
        assert list_faults(tmp_path) == [message]
        assert open_checkpoint(tmp_path).quantization_config == {"quant_method": "awq", **AWQ}


# ---- whatever else a path may be


def test_a_path_that_is_not_a_checkpoint_is_a_one_line_error(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    assert opening_error(file) == f"{file} cannot be read: No such file or directory"
    file.touch()
    assert opening_error(file) == f"{file} is empty (expected a safetensors file)"
    assert opening_error(tmp_path) == f"{file} is empty (expected a safetensors file)"
    os.truncate(file, 1 << 40)
    expected = f"{file} declares a header of 0 bytes (expected a safetensors file with a JSON object as its header)"
    assert opening_error(file) == expected
    file.unlink()
    os.mkfifo(file)
    assert opening_error(file) == f"{file} is not a file (expected a safetensors file)"
    (tmp_path / "loop").symlink_to("loop")
    assert opening_error(tmp_path / "loop") == f"{tmp_path / 'loop'} cannot be read: Too many levels of symbolic links"
    (tmp_path / "text").write_text("a text of some words")
    assert opening_error(tmp_path / "text") == f"{tmp_path / 'text'} is not a checkpoint {ACCEPTED}"
    (tmp_path / "archive").write_bytes(b"PK\3\4 and more of it")
    expected = f"{tmp_path / 'archive'} is a zip archive, probably a PyTorch checkpoint {ACCEPTED}"
    assert opening_error(tmp_path / "archive") == expected
    assert "invalid file name" in opening_error(Path("a\0b.safetensors"))
    assert "invalid file name" in opening_error(Path("a\0-00001-of-00002.safetensors"))


def test_shards_that_are_all_missing_are_an_error(tmp_path: Path) -> None:
    for name in (FIRST, SECOND):
        (tmp_path / name).symlink_to("none")
    assert (
        opening_error(tmp_path)
        == f"{tmp_path} cannot read any of its 2 files: {FIRST} is a broken link (expected at least one readable file)"
    )
    assert opening_error(tmp_path / FIRST) == f"{tmp_path / FIRST} is a broken link"


SPOILT = {
    "loop": "Too many levels", "folder": "is not a file", "pipe": "is not a file", "empty": "is empty",
    "cut": "contains ",
}  # fmt: skip


@pytest.mark.parametrize("kind", SPOILT)
def test_a_shard_that_is_damaged_or_not_a_file_is_rejected(kind: str, tmp_path: Path) -> None:
    write_sharded(tmp_path)
    path = tmp_path / SECOND
    data = path.read_bytes()
    path.unlink()
    if kind == "loop":
        path.symlink_to(SECOND)
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(data[:-1] if kind == "cut" else b"")
    message = opening_error(tmp_path / INDEX)
    assert message.startswith((f"{path}: ", f"{path} "))
    assert SPOILT[kind] in message


def test_an_unrelated_loop_in_a_folder_does_no_harm(tmp_path: Path) -> None:
    write_sharded(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    assert open_checkpoint(tmp_path).faults == ()


def test_the_format_of_a_file_without_an_ending_is_read_from_its_first_bytes(tmp_path: Path) -> None:
    assert open_checkpoint(write_saved(tmp_path / "0123abcd")).format == "safetensors"
    write_split_gguf(tmp_path, "m.gguf", 1)
    (tmp_path / "m.gguf").rename(tmp_path / "4567cdef")
    assert open_checkpoint(tmp_path / "4567cdef").format == "gguf"


# ---- whether two tensors are the same


def open_pair(folder: Path, one: Any, other: Any) -> Checkpoint:
    return open_checkpoint(
        write_sharded(folder, [{"a": one}, {"b": other}], {"a": FIRST, "b": SECOND}, one.nbytes + other.nbytes)
    )


def test_copies_are_recognised_by_their_values(tmp_path: Path) -> None:
    values = np.arange(300, dtype=np.float32).reshape(30, 10)
    assert have_same_samples(open_pair(tmp_path, values, values), "a", "b") is True
    assert have_same_samples(open_pair(tmp_path, values, values), "a", "a") is True
    for i in (0, 150, 299):
        other = values.copy()
        other.flat[i] += 1
        assert have_same_samples(open_pair(tmp_path, values, other), "a", "b") is False
    assert have_same_samples(open_pair(tmp_path, values, values.T.copy()), "a", "b") is False
    assert have_same_samples(open_pair(tmp_path, values, values.view(np.int32)), "a", "b") is False
    assert have_same_samples(open_pair(tmp_path, values[:0], values[:0]), "a", "b") is True


def test_samples_of_large_tensors_include_the_first_and_last_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(1).integers(0, 256, 1_000_001, np.uint8)
    read: list[int] = []
    original = sampling._read_at

    def record_read(file: BinaryIO, at: int, n: int) -> bytes:
        read.append(n)
        return original(file, at, n)

    monkeypatch.setattr(sampling, "_read_at", record_read)
    assert have_same_samples(open_pair(tmp_path, values, values), "a", "b") is True
    assert sum(read) == 2 * 64 * 4096
    for i, around in ((0, 8000), (500_000, 8000), (1_000_000, 8000), (0, 0), (1_000_000, 0)):
        other = values.copy()
        other[max(0, i - around) : i + max(around, 1)] ^= 1
        assert have_same_samples(open_pair(tmp_path, values, other), "a", "b") is False


def test_tensors_without_values_are_not_compared(tmp_path: Path) -> None:
    values = np.ones((2, 2))
    open_pair(tmp_path, values, values)
    (tmp_path / SECOND).unlink()
    assert have_same_samples(open_checkpoint(tmp_path), "a", "b") is None
    assert have_same_samples(open_checkpoint(tmp_path), "b", "a") is None
    (tmp_path / FIRST).unlink()
    assert have_same_samples(open_checkpoint(tmp_path), "a", "b") is None
    (tmp_path / INDEX).write_text(
        json.dumps({name: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i, name in enumerate("ab")})
    )
    assert have_same_samples(open_checkpoint(tmp_path / INDEX), "a", "b") is None


def test_a_file_that_has_changed_is_not_compared(tmp_path: Path) -> None:
    values = np.ones((2, 2))
    found = open_pair(tmp_path, values, values)
    write_saved(tmp_path / SECOND, "b")
    for one, other in ("ab", "ba"):
        with pytest.raises(ParamcountError, match=rf"{SECOND} changed while paramcount was reading it$"):
            have_same_samples(found, one, other)
    (tmp_path / FIRST).unlink()
    with pytest.raises(ParamcountError, match=rf"{FIRST} cannot be read: No such file or directory$"):
        have_same_samples(found, "a", "b")
