"""Sources of a config.json; every other file is an error of one line that says what it is."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.errors import join_place
from paramcount.huggingface import locate as config_files
from tests.refusing import Refuse, assert_one_line, error_of, model_error
from tests.running import Runner

QWEN = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "vocab_size": 151936, "hidden_size": 4096,
    "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 12288, "tie_word_embeddings": False,
}  # fmt: skip
TOTAL = 8_190_735_360  # Qwen3ForCausalLM with these sizes, transformers 5.23.0
pytestmark = pytest.mark.usefixtures("_in_an_empty_directory")


def write_config(path: str, document: Any = QWEN) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return file


def write_cache(repository: str, revision: str, document: Any = QWEN, *, main: bool = True, home: str = "hf") -> Path:
    """A repository as huggingface_hub caches it: blobs, links to them, and the revision that main points to."""
    folder = Path(home) / "hub" / f"models--{repository.replace('/', '--')}"
    blob = write_config(f"{folder}/blobs/{revision}", document)
    link = folder / "snapshots" / revision / "config.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(os.path.relpath(blob, link.parent))
    if main:
        write_config(f"{folder}/refs/main", revision + "\n")
    return folder


# ---- sources


@pytest.mark.parametrize("word", ["./config.json", "config.json", "Qwen3-8B/", "./Qwen3-8B", "./Qwen3-8B/config.json"])
def test_a_file_or_a_directory_is_read(word: str, run: Runner) -> None:
    write_config("config.json")
    write_config("Qwen3-8B/config.json")
    assert pc.count(word).total == pc.count(Path(word)).total == TOTAL
    assert "8,190,735,360 parameters (8.19B) as built by Qwen3ForCausalLM" in " ".join(run(word).out.split())


def test_a_file_of_any_name_is_read() -> None:
    write_config("qwen.json")
    assert pc.load("qwen.json").name == "qwen"
    assert pc.count("qwen.json").total == TOTAL


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, run: Runner) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(QWEN).encode())))
    assert json.loads(run("-", "--json").out)["total"] == TOTAL


def test_a_mapping_is_a_config_json_or_a_zoo_entry_and_never_both() -> None:
    assert pc.count(QWEN).total == TOTAL
    entry = {"architecture": "qwen3", "config": pc.load(QWEN).sizes.to_dict()}
    assert pc.count(entry).total == TOTAL
    expected = "has both model_type and architecture (expected a config.json or a zoo entry, not both)"
    assert model_error(QWEN | entry) == expected


def test_a_json_file_may_contain_a_zoo_entry() -> None:
    write_config("entry.json", {"architecture": "qwen3", "config": pc.load(QWEN).sizes.to_dict()})
    assert pc.count("entry.json").total == TOTAL


def test_a_repository_is_looked_up_in_the_zoo_before_the_local_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", "hf")
    write_cache("somebody/my-qwen", "abc123")
    write_cache("Qwen/Qwen3-8B", "abc123", QWEN | {"num_hidden_layers": 1})
    assert pc.load("somebody/my-qwen").name == "somebody/my-qwen"
    assert pc.count("somebody/my-qwen").total == TOTAL
    assert pc.count("Qwen/Qwen3-8B").id == "qwen3-8b"


@pytest.mark.parametrize(
    ("variable", "value"),
    [("HF_HUB_CACHE", "hf/hub"), ("HUGGINGFACE_HUB_CACHE", "hf/hub"), ("HF_HOME", "hf"), ("XDG_CACHE_HOME", "xdg")],
)
def test_the_cache_is_found_like_huggingface_hub_finds_it(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    write_cache("somebody/my-qwen", "abc123", home="xdg/huggingface" if variable == "XDG_CACHE_HOME" else "hf")
    assert pc.count("somebody/my-qwen").total == TOTAL


def test_main_is_read_from_several_revisions_and_without_main_none_is() -> None:
    folder = write_cache("a/b", "aaa", QWEN | {"num_hidden_layers": 1}, main=False)
    assert pc.count(f"./{folder}").total < TOTAL
    write_cache("a/b", "bbb", main=False)
    expected = f"{folder} has 2 revisions, but none is main: aaa, bbb (expected the directory of one of them)"
    assert model_error(f"./{folder}") == expected
    assert pc.count(f"./{folder}/snapshots/bbb").total == TOTAL
    write_config(f"{folder}/refs/main", "bbb")
    assert pc.count(f"./{folder}").total == TOTAL


@pytest.mark.parametrize("revisions", [(), ("aaa",), ("aaa", "bbb")])
def test_a_missing_snapshot_of_main_is_an_error_even_if_there_are_others(
    revisions: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", "hf")
    folder = Path("hf/hub/models--a--b")
    (folder / "snapshots").mkdir(parents=True)
    for revision in revisions:
        write_cache("a/b", revision, main=False)
    write_config(f"{folder}/refs/main", "ccc\n")
    expected = (
        f"one of {', '.join(revisions)}" if revisions else "a revision with config.json; download=True fetches it"
    )
    message = (
        f"{folder}/refs/main: points to revision 'ccc', whose config.json is not in the cache (expected {expected})"
    )
    assert model_error(f"./{folder}") == message
    assert error_of(pc.load, "a/b") == message


def test_a_cache_in_an_unknown_home_directory_is_an_error(monkeypatch: pytest.MonkeyPatch, refuse: Refuse) -> None:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", "~no-such-person/x")
    message = "the Hugging Face cache: ~no-such-person/x/hub cannot be read: no such home directory"
    assert error_of(pc.load, "a/b") == refuse("a/b") == message


@pytest.mark.parametrize(
    "path", ["./" + "a" * 5000, "./" + "a/" * 3000, "/" + "a" * 300 + ".json", "./" + "a" * 5000 + ".yaml"]
)
def test_a_path_that_is_too_long_is_an_error(path: str) -> None:
    assert model_error(path).endswith(" cannot be read: File name too long")


@pytest.mark.parametrize("value", [[], {}, 7, True])
def test_a_model_type_that_is_not_a_string_is_an_error_whatever_the_class(value: Any) -> None:
    assert model_error({"model_type": value, "architectures": ["BartForCausalLM"]}).startswith("model_type = ")


@pytest.mark.parametrize("key", [1, 0, None, ("a",), 1.5])
def test_a_key_that_is_not_a_string_is_an_error(key: Any) -> None:
    assert model_error({"model_type": "llama", key: 2}).endswith("is not a string (expected string keys)")
    assert pc.count({"model_type": "llama", "id2label": {key: "a"}}).total == pc.count({"model_type": "llama"}).total


@pytest.mark.parametrize("name", ["../etc/passwd", "a/../b", "a/b/c", "/a", "a/", "a//b", "a/b\n", "a/\u202eb"])
def test_only_repository_names_are_looked_up_in_the_cache(name: str) -> None:
    assert config_files.REPO.fullmatch(name) is None
    assert error_of(pc.load, name)


# ---- other files


def test_a_broken_link_is_an_error() -> None:
    Path("x").mkdir()
    Path("x/config.json").symlink_to("nowhere")
    assert model_error("./x") == "x/config.json is a broken link"
    folder = write_cache("a/b", "aaa")
    (folder / "blobs" / "aaa").unlink()
    assert model_error(f"./{folder}") == f"{folder}/snapshots/aaa/config.json is a broken link"


def test_the_error_for_a_directory_of_models_lists_them() -> None:
    for name in ("b", "a", "c", "e", "d"):
        write_config(f"store/{name}/config.json")
    assert (
        model_error("./store")
        == "store has no config.json, but 5 subdirectories do: a, b, c, d, … (expected one of them; `paramcount "
        "scan` counts all)"
    )


def test_the_error_for_a_directory_without_config_lists_its_files() -> None:
    for name in ("tokenizer.json", "model.safetensors", "README.md"):
        write_config(f"x/{name}")
    expected = "x has no config.json, only model.safetensors, tokenizer.json (expected the directory of a model)"
    assert model_error("./x") == expected
    assert model_error("./nowhere") == "nowhere cannot be read: No such file or directory"


OBJECT = "(expected a JSON object)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f"is empty {OBJECT}"),
        ("[]", f"contains [] {OBJECT}"),
        ("[1, 2", f"line 1 column 6: invalid JSON: unexpected end of file {OBJECT}"),
        ('"qwen3"', f"contains 'qwen3' {OBJECT}"),
        ("7", f"contains 7 {OBJECT}"),
        ("null", f"contains null {OBJECT}"),
        ('{"model_type": "qwen3"', f"line 1 column 23: invalid JSON: unexpected end of file {OBJECT}"),
        ('{\n"model_type": qwen3}', f"line 2 column 15: invalid JSON: expecting value {OBJECT}"),
        ('{"a": 1, "a": 2}', "duplicate key 'a'"),
        ('{"x": {"a\\u001b": 1, "a\\u001b": 2}}', r"duplicate key 'a\x1b'"),
        ('{"model_type": "qwen3", "rope_theta": NaN}', "NaN is not allowed (expected a finite number)"),
        ('{"model_type": "qwen3", "rope_theta": 1e400}', "1e400 is too large (expected a finite number)"),
        (
            '{"model_type": "qwen3", "hidden_size": 1' + "0" * 5000 + "}",
            "a number of 5,001 digits (expected at most 100)",
        ),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, "is nested too deeply (expected at most 100 levels)"),
        ("[" * 100_000, "is nested too deeply (expected at most 100 levels)"),
        ("[" * 101 + "]" * 101, "is nested too deeply (expected at most 100 levels)"),
        ("[" * 100 + "]" * 100, f"contains [[…]] {OBJECT}"),
        ('"' + "[" * 101 + '"', f"contains '{'[' * 28}…{'[' * 29}' {OBJECT}"),
        (r'"\""' + "[" * 100, f"line 1 column 5: invalid JSON: extra data {OBJECT}"),
        ('{"model_type": "qwen3",\n "vocab_size": 7 ,\n}', f"line 2 column 18: invalid JSON: trailing comma {OBJECT}"),
        ("[1,]", f"line 1 column 3: invalid JSON: trailing comma {OBJECT}"),
        ("[,]", f"line 1 column 2: invalid JSON: expecting value {OBJECT}"),
        ("{,}", f"line 1 column 2: invalid JSON: expecting property name enclosed in double quotes {OBJECT}"),
        ('{"model_type": "qwen3", "hidden_size": Infinity}', "hidden_size = inf (expected a positive integer)"),
        ("\ufeff{}", f"line 1 column 1: invalid JSON: unexpected UTF-8 BOM (decode using utf-8-sig) {OBJECT}"),
    ],
)
def test_anything_but_a_json_object_is_an_error(text: str, message: str, refuse: Refuse) -> None:
    write_config("x.json", text)
    assert model_error("x.json") == refuse("x.json") == join_place("x.json", message)


def test_a_repeated_key_is_found_among_very_many() -> None:
    write_config("x.json", "{" + "".join(f'"{i}": 0, ' for i in range(300_000)) + '"299999": 0}')
    assert model_error("x.json") == "x.json: duplicate key '299999'"


def test_infinity_is_accepted_in_keys_that_are_not_sizes() -> None:
    write_config("x.json", '{"model_type": "mamba2", "time_step_limit": [0.0, Infinity]}')
    assert pc.count("x.json").total == 7_285_403_648  # Mamba2ForCausalLM, default config


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GGUF\x03\x00\x00\x00", "is a GGUF file (expected a model's config.json)"),
        (b"PK\x03\x04archive/data.pkl",
         "is a zip archive, probably a PyTorch checkpoint (expected a model's config.json)"),
        (b"\x80\x02}q\x00.", "is a pickle (expected a model's config.json)"),
        (b"version https://git-lfs.github.com/spec/v1\n",
         "is a Git LFS pointer; run `git lfs pull` to fetch the file (expected a model's config.json)"),
        (b'\x40\x00\x00\x00\x00\x00\x00\x00{"__metadata__"', "is a safetensors file (expected a model's config.json)"),
        (b"\xff\xfe{\x00", "is not valid UTF-8 (expected a model's config.json)"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_text_is_an_error(data: bytes, message: str) -> None:
    Path("x.json").write_bytes(data)
    assert model_error("x.json") == join_place("x.json", message)


def test_a_file_of_100_megabytes_is_rejected_without_reading_it() -> None:
    with Path("x.json").open("wb") as file:
        file.truncate(100 << 20)
    assert model_error("x.json") == "x.json is too large (expected a model's config.json of at most 4,194,304 bytes)"


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "/dev/null", "itself"])
def test_a_path_that_is_not_a_regular_file_never_blocks(kind: str) -> None:
    if kind == "pipe":
        os.mkfifo("x.json")
    else:
        Path("x.json").symlink_to("x.json" if kind == "itself" else kind)
    expected = (
        "cannot be read: Too many levels of symbolic links"
        if kind == "itself"
        else "is not a file (expected a model's config.json)"
    )
    assert model_error("x.json") == join_place("x.json", expected)


# ---- invalid sizes


def test_every_error_is_one_line() -> None:
    for value in ("\x1b]0;x\x07", "\u202e", "a\nb", "\ud800", "x" * 10**6):
        for key in ("model_type", "hidden_size", "layer_types"):
            assert_one_line(model_error(QWEN | {"architectures": [], key: value}))
    assert pc.count(QWEN | {"architectures": ["\x1b[31mForCausalLM"]}).reference == "Qwen3ForCausalLM"
