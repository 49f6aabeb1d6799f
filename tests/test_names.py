"""Names of models: accepted spellings, unknown names, and no access to files outside the zoo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.formats.strict_yaml import read_yaml
from paramcount.loading import select_models
from paramcount.zoo import catalog, entries, names
from paramcount.zoo.names import expand_pattern, find_id, is_path
from tests.refusing import Refuse, assert_one_line, error_of, model_error
from tests.running import Runner

EXPECTED = "(expected a name from `paramcount list`, or a path such as ./model.yaml)"
pytestmark = pytest.mark.usefixtures("_in_an_empty_directory")


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("gpt2", "gpt2-small"), ("GPT2-small", "gpt2-small"), ("GPT-2 small", "gpt2-small"),
        ("gpt2_small", "gpt2-small"), (" gpt2-small\n", "gpt2-small"),
        ("openai-community/gpt2", "gpt2-small"), ("Llama 3.1 8B", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-8B", "llama-3.1-8b"), ("LLAMA3.1-8B", "llama-3.1-8b"), ("gpt 3", "gpt-3"),
        ("llama3-8b", "llama-3-8b"), ("llama_3.1_8b", "llama-3.1-8b"), ("qwen2.5 72b", "qwen2.5-72b"),
    ],
)  # fmt: skip
def test_common_spellings_find_the_entry(name: str, id: str) -> None:
    assert find_id(name) == pc.load(name).id == id


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("gpt2-smal", "gpt2-small, gpt-3-small or gpt2-xl"), ("llama-3.1-8", "llama-3.1-8b"),
        ("lama", "llama"), ("qwem", "qwen"), ("comprae", "`paramcount compare`"),
        ("verfiy", "`paramcount verify`"), ("hlep", "`paramcount help`"),
        ("depseek", "deepseek"),
    ],
)  # fmt: skip
def test_an_unknown_name_is_answered_with_the_nearest_models_families_and_commands(
    name: str, nearest: str, refuse: Refuse
) -> None:
    expected = f"unknown model '{name}' {EXPECTED}; did you mean {nearest}"
    assert error_of(pc.load, name).startswith(expected)
    assert refuse(name).startswith(expected)


@pytest.mark.parametrize("name", ["meta-lama/Llama-3.1-8B", "llama/llama-3.1-8b"])
def test_an_unknown_repository_is_answered_with_the_nearest_model_and_download(name: str, refuse: Refuse) -> None:
    accepted = (
        "(expected a name from `paramcount list` or a repository in the local Hugging Face cache; download=True "
        "fetches others)"
    )
    message = error_of(pc.load, name)
    assert message.startswith(f"unknown model '{name}' {accepted}; did you mean llama-3.1-8b")
    assert refuse(name) == message.replace("download=True", "--download")


def test_a_very_long_name_is_shortened_in_the_middle(refuse: Refuse) -> None:
    for name in ("a" * 100_000, "gpt2-small" * 10_000, "ab" * 130):
        expected = f"unknown model '{name[:28]}…{name[-29:]}' {EXPECTED}"
        assert error_of(pc.load, name).startswith(expected)
        assert refuse(name).startswith(expected)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("gpt2\0-small", r"gpt2\x00-small"), ("\x1b[31mgpt2", r"\x1b[31mgpt2"), ("\u202e2tpg", r"\u202e2tpg"),
        ("gpt2\x9b31m", r"gpt2\x9b31m"),
        ("a\nb", r"a\nb"), ("\r", r"\r"), ("\u2028", r"\u2028"), ("\ud800", r"\ud800"), ("\udcff", r"\udcff"),
        ("gpt2\u200b!", r"gpt2\u200b!"), ("\\", "\\\\"),
    ],
)  # fmt: skip
def test_control_characters_of_a_name_are_escaped_in_the_error(name: str, shown: str, refuse: Refuse) -> None:
    expected = f"unknown model '{shown}' {EXPECTED}"
    assert error_of(pc.load, name).startswith(expected)
    assert refuse(name).startswith(expected)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("-", "standard input cannot be read (expected a model's config.json, piped in)"),
        (".", ". has no config.json (expected the directory of a model)"),
        ("../x", "../x cannot be read: No such file or directory"),
        ("..%2fx", "..%2fx cannot be read: No such file or directory"),
        ("/etc/passwd", "/etc/passwd: line 1 column 1: invalid JSON: expecting value (expected a JSON object)"),
        ("gpt2-small/", "gpt2-small cannot be read: No such file or directory"),
        ("../x.yaml", "../x.yaml cannot be read: No such file or directory"),
        ("gpt2-small.yaml", "gpt2-small.yaml cannot be read: No such file or directory"),
        ("GPT2-SMALL.YAML", "GPT2-SMALL.YAML cannot be read: No such file or directory"),
    ],
)
def test_a_name_that_looks_like_a_path_is_never_looked_up_in_the_zoo(name: str, message: str, refuse: Refuse) -> None:
    assert is_path(name)
    assert expand_pattern(name) is None
    assert model_error(name) == message
    assert refuse(name) == message


@pytest.mark.parametrize("name", ["model.safetensors", "./MODEL.SAFETENSORS"])
def test_only_show_reads_a_checkpoint_as_a_model(name: str, refuse: Refuse) -> None:
    assert is_path(name)
    place = name.removeprefix("./")
    instead = "the config.json in the same directory; `paramcount PATH` counts a checkpoint"
    assert model_error(name) == f"{place} is a checkpoint, not a config (expected {instead})"
    assert refuse(name) == f"{place} cannot be read: No such file or directory"


@pytest.mark.parametrize("command", [(), ("compare",), ("list",)])
def test_a_family_or_a_wildcard_selects_all_its_models(command: tuple[str, ...], run: Runner) -> None:
    for word in ("GPT-OSS", "gpt-oss*", "gpt?oss-*"):
        done = run(*command, word, "--csv")
        assert (done.code, done.err) == (0, "")
        assert [line.partition(",")[0] for line in done.out.splitlines()] == ["id", "gpt-oss-20b", "gpt-oss-120b"]


def test_a_star_selects_the_whole_zoo_without_estimates() -> None:
    counted = [id for id in zoo.list_ids() if not zoo.load_entry(id).estimate]
    assert len(counted) >= 100
    assert [model.id for model in select_models(["*"])] == [model.id for model in select_models("*")] == counted
    assert {model.id for model in select_models(["*"], estimates=True)} - set(counted) == {"gpt-4", "gpt-4o"}


@pytest.mark.parametrize(
    "word",
    [
        "?",
        "x*x",
        "*[",
        "*[!a",
        "(*",
        "*\\",
        "*{}",
        "*\ud800",
        "*\0",
        "**\x1b",
        "*" + "a" * 300,
        "*a" * 5000,
        "[[" * 50 + "*",
    ],
)
def test_a_wildcard_that_matches_nothing_is_an_error(word: str, refuse: Refuse) -> None:
    message = refuse(word, "-o", "out.csv")
    assert message.startswith("no model matches '")
    assert message.endswith("' (expected a pattern that matches ids from `paramcount list`, such as 'qwen3-*')")
    assert error_of(pc.compare, [word]) == message


# ---- files outside configs/


@pytest.fixture
def _a_zoo_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A zoo with configs/tiny/tiny-1.yaml, and an entry outside configs/ that no name may reach."""
    (tmp_path / "configs/tiny").mkdir(parents=True)
    sizes = "vocab_size: 9, n_positions: 9, d_model: 4, n_layers: 1, n_heads: 2, d_head: 2, d_ff: 8"
    sizes += ", tie_word_embeddings: true"
    text = f"architecture: gpt2\nfamily: tiny\nconfig: {{{sizes}}}\n"
    for name in ("configs/tiny/tiny-1.yaml", "configs/tiny/tiny-2.yml", "secret.yaml", "configs/secret.yaml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(catalog, "CONFIGS", tmp_path / "configs")
    catalog.clear_caches()
    names.index_spellings.cache_clear()
    yield
    catalog.clear_caches()
    names.index_spellings.cache_clear()


@pytest.mark.usefixtures("_a_zoo_of_one")
@pytest.mark.parametrize(
    "name",
    ["secret", "../secret", "../../secret", "tiny/../../secret", "tiny/../secret", "tiny/tiny-1", "..%2fsecret",
        "%2e%2e/secret", "..\\secret",
        "tiny-1.yaml/../../secret",
     "tiny-2", "TINY-1\0", "tiny-1.yaml\0", "SECRET", "s?cret", "*secret", "*/secret", ""],
)  # fmt: skip
def test_no_name_reaches_files_outside_the_zoo(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []

    def load(path: Path, until: str = "") -> dict[str, Any]:
        opened.append(path)
        return read_yaml(path, until)

    monkeypatch.setattr(catalog, "read_yaml", load)
    monkeypatch.setattr(entries, "read_yaml", load)
    assert zoo.find_path(name) is None
    with pytest.raises(pc.ParamcountError) as caught:
        zoo.load_entry(name)
    assert_one_line(str(caught.value))
    with pytest.raises(pc.ParamcountError):
        select_models([name])
    assert {path.name for path in opened} <= {"tiny-1.yaml"}


@pytest.mark.usefixtures("_a_zoo_of_one")
def test_an_entry_in_the_wrong_place_is_an_error(tmp_path: Path) -> None:
    assert pc.count("tiny-1").embedding == 36
    path = tmp_path / "configs/tiny/tiny-3.yaml"
    path.write_text((tmp_path / "secret.yaml").read_text(encoding="utf-8").replace("tiny", "small"), encoding="utf-8")
    catalog.clear_caches()
    with pytest.raises(pc.ParamcountError) as caught:
        pc.load("tiny-3")
    problem = "id tiny-3 of family small is in tiny/tiny-3.yaml (expected <family>/<id>.yaml)"
    assert str(caught.value) == f"{path}: {problem}"


# ---- numbers in names


@pytest.mark.parametrize("name", ["qwen-27b", "qwen 34b", "llama 38b", "llama-370b", "gpt 313b", "gpt-31-3b"])
def test_separate_numbers_in_a_name_are_not_joined(name: str) -> None:
    with pytest.raises(pc.ParamcountError, match="unknown model"):
        find_id(name)


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        ("llama-3-*", ["llama-3-8b", "llama-3-70b"]),
        ("mixtral-*", ["mixtral-8x7b", "mixtral-8x22b", "mixtral-8x22b-instruct"]),
        ("GPT2-*", ["gpt2-small", "gpt2-medium", "gpt2-large", "gpt2-xl"]),
        ("gpt oss*", ["gpt-oss-20b", "gpt-oss-120b"]),
    ],
)
def test_a_wildcard_matches_other_spellings_only_if_no_id_matches_exactly(pattern: str, ids: list[str]) -> None:
    assert expand_pattern(pattern) == ids


def test_a_release_that_shares_the_entry_of_another_gets_a_note(run: Runner) -> None:
    note = "note: deepseek-v2.5 has the same sizes as deepseek-v2; using the entry of deepseek-v2\n"
    for name, expected in (("deepseek-v2.5", note), ("gpt2", ""), ("GPT-2 small", "")):
        assert run(name).err == expected


def test_a_model_type_is_named_as_one_with_models_of_it(refuse: Refuse) -> None:
    """The types of the reference; `configs` has no SEW, and three sizes of Phi-3."""
    assert refuse("sew") == (
        "sew is a supported model type, not a model; no model of it is in the zoo (expected the path of a "
        "config.json, such as ./config.json)"
    )
    message = refuse("phi3")
    assert message.startswith("phi3 is a supported model type, not a model (expected a model of this type, or the path")
    assert message.endswith("; did you mean phi-3-mini, phi-3-medium or phi-3.5-mini?")
