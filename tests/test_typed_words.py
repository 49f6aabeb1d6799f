"""Words that are not zoo names: bare file names, URLs of the Hub; and the objects that Python accepts as models."""

from __future__ import annotations

from collections import UserDict
from pathlib import Path, PurePath
from typing import Any

import pytest

import paramcount as pc
from paramcount.formats.hub_urls import HubAddress, parse_hub_url
from tests.refusing import error_of, model_error
from tests.running import Runner, run_process
from tests.test_config_files import QWEN, TOTAL, write_cache, write_config

GPT2_TOTAL = 124_439_808
LAYER = 4096 * (2 * 4096 + 2 * 1024) + 3 * 4096 * 12288 + 2 * 4096 + 2 * 128  # of QWEN: attention, MLP, norms
pytestmark = pytest.mark.usefixtures("_in_an_empty_directory")


# ---- bare names


@pytest.mark.parametrize("path", ["my-qwen/config.json", "somebody/my-qwen/config.json", "my-qwen"])
def test_a_folder_or_file_is_read_by_its_bare_name(path: str, run: Runner) -> None:
    write_config(path)
    word = path.removesuffix("/config.json")
    assert pc.count(word).total == TOTAL
    done = run(word)
    assert (done.code, done.err) == (0, "")
    assert "8,190,735,360" in done.out
    assert run("compare", word, "gpt2-small", "--csv", "--columns", "total").out.splitlines()[1].endswith(str(TOTAL))


def test_a_folder_takes_precedence_over_the_cache_as_in_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", "hf")
    write_cache("somebody/my-qwen", "abc", QWEN | {"num_hidden_layers": 1})
    assert pc.count("somebody/my-qwen").total < TOTAL
    write_config("somebody/my-qwen/config.json")
    assert pc.count("somebody/my-qwen").total == TOTAL


def test_a_zoo_name_takes_precedence_over_a_folder_with_a_note(run: Runner) -> None:
    write_config("gpt2-small/config.json")
    done = run("gpt2-small")
    assert (done.code, done.err) == (
        0,
        'note: using the zoo model "gpt2-small"; for the directory, pass ./gpt2-small\n',
    )
    assert "124,439,808" in done.out
    assert pc.count("gpt2-small").total == GPT2_TOTAL
    assert pc.count("./gpt2-small").total == TOTAL
    write_config("gpt-oss/config.json")
    done = run("gpt-oss", "--csv", "--columns", "total")
    assert done.err == 'note: using the zoo family "gpt-oss"; for the directory, pass ./gpt-oss\n'
    assert [line.partition(",")[0] for line in done.out.splitlines()] == ["id", "gpt-oss-20b", "gpt-oss-120b"]


def test_a_checkpoint_is_read_by_its_bare_name(run: Runner) -> None:
    write_config("model.safetensors.index.json", {"metadata": {"total_size": 0}, "weight_map": {}})
    Path("store").mkdir()
    Path("model.safetensors.index.json").rename("store/model.safetensors.index.json")
    assert run("store") == run("./store")


# ---- URLs


@pytest.mark.parametrize(
    ("url", "repo", "revision"),
    [
        ("https://huggingface.co/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "main"),
        ("https://huggingface.co/Qwen/Qwen3-8B/", "Qwen/Qwen3-8B", "main"),
        ("http://www.huggingface.co/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "main"),
        ("hf.co/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "main"),
        ("https://huggingface.co/Qwen/Qwen3-8B/blob/main/config.json", "Qwen/Qwen3-8B", "main"),
        ("https://huggingface.co/Qwen/Qwen3-8B/resolve/main/config.json?download=true", "Qwen/Qwen3-8B", "main"),
        ("https://huggingface.co/Qwen/Qwen3-8B/raw/main/config.json", "Qwen/Qwen3-8B", "main"),
        ("https://huggingface.co/Qwen/Qwen3-8B/tree/main", "Qwen/Qwen3-8B", "main"),
        ("https://huggingface.co/Qwen/Qwen3-8B/tree", "Qwen/Qwen3-8B", "main"),
        ("https://huggingface.co/Qwen/Qwen3-8B/tree/v1.0", "Qwen/Qwen3-8B", "v1.0"),
        ("HTTPS://HF.CO/Qwen/Qwen3-8B#files", "Qwen/Qwen3-8B", "main"),
        ("https://huggingface.co/Qwen/Qwen3-8B/discussions/7", "Qwen/Qwen3-8B", "main"),
        ("https://huggingface.co/gpt2/blob/main/config.json", "gpt2", "main"),
    ],
)  # fmt: skip
def test_a_hugging_face_url_is_parsed_into_repository_and_revision(url: str, repo: str, revision: str) -> None:
    assert parse_hub_url(url) == HubAddress(repo, revision)


@pytest.mark.parametrize(
    "url", ["https://huggingface.co/Qwen/Qwen3-8B/blob/main/config.json", "hf.co/Qwen/Qwen3-8B?library=transformers"]
)
def test_a_url_finds_the_zoo_entry(url: str, run: Runner) -> None:
    assert pc.load(url).id == "qwen3-8b"
    done = run(url)
    assert (done.code, done.err, done.out) == (0, "", run("qwen3-8b").out)


def test_a_url_finds_the_repository_in_the_local_cache_at_its_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", "hf")
    write_cache("somebody/my-qwen", "aaa111")
    folder = write_cache("somebody/my-qwen", "bbb222", QWEN | {"num_hidden_layers": 1}, main=False)
    write_config(f"{folder}/refs/v1", "bbb222")
    url = "https://huggingface.co/somebody/my-qwen"
    assert (
        pc.count(url).total
        == pc.count(f"{url}/tree/main").total
        == pc.count(f"{url}/blob/aaa111/config.json").total
        == TOTAL
    )
    assert pc.count(f"{url}/tree/v1").total == pc.count(f"{url}/blob/bbb222/config.json").total == TOTAL - 35 * LAYER
    assert error_of(pc.load, f"{url}/tree/v2").startswith(
        "revision 'v2' of 'somebody/my-qwen' is not in the local Hugging Face cache"
    )


def test_a_zoo_entry_is_used_for_the_main_revision_only() -> None:
    expected = "revision 'abc' of 'Qwen/Qwen3-8B' is not in the local Hugging Face cache"
    assert error_of(pc.load, "https://huggingface.co/Qwen/Qwen3-8B/blob/abc/config.json").startswith(expected)


def test_a_url_is_never_read_as_a_local_file() -> None:
    write_config("hf.co/somebody/my-qwen/config.json")
    write_config("somebody/my-qwen/config.json")
    assert error_of(pc.load, "hf.co/somebody/my-qwen").startswith("unknown model 'somebody/my-qwen'")


# ---- Python objects


class Config:
    """The interface that all transformers configs share."""

    model_type = "qwen3"

    def __init__(self, answer: Any = QWEN, name_or_path: object = "") -> None:
        self.answer, self.name_or_path = answer, name_or_path

    def to_dict(self) -> Any:
        return self.answer


class Dtype:
    def __str__(self) -> str:
        return "torch.bfloat16"


def test_a_config_object_is_read_like_the_config_json_that_it_saves() -> None:
    config = Config(
        QWEN | {"id2label": {0: "LABEL_0"}, "torch_dtype": Dtype(), "layer_types": ("full_attention",) * 36},
        "Qwen/Qwen3-8B",
    )
    assert pc.count(config).total == TOTAL
    assert pc.load(config).id == "Qwen/Qwen3-8B"
    assert pc.load(Config()).id == "unnamed"
    assert pc.compare([config, "gpt2-small"])["total"].tolist() == [TOTAL, GPT2_TOTAL]
    assert pc.what_if(config, n_layers=1).original is not None


class Failing(Config):
    def to_dict(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.to_dict() if self.answer == "itself" else self.answer


CIRCLE: dict[str, Any] = {"model_type": "qwen3"}
CIRCLE["inner"] = CIRCLE


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Config, "type is not a model"),
        (Config([1]), "to_dict() of Config does not return a mapping"),
        (Failing(KeyError("hidden_size")), "to_dict() of Failing raises KeyError: 'hidden_size'"),
        (Failing("itself"), "to_dict() of Failing raises RecursionError: maximum recursion depth exceeded"),
        (Failing(CIRCLE), "to_dict() of Failing raises ValueError: Circular reference detected"),
        (Failing({(1, 2): 3}), "to_dict() of Failing raises TypeError: keys must be str"),
    ],
)
def test_a_config_object_whose_to_dict_fails_is_an_error(config: object, message: str) -> None:
    assert model_error(config).startswith(message)


def test_any_mapping_and_any_path_object_are_accepted() -> None:
    write_config("my-qwen/config.json")
    assert pc.count(UserDict(QWEN)).total == TOTAL
    assert pc.count(Path("my-qwen")).total == pc.count(PurePath("my-qwen/config.json")).total == TOTAL
    assert pc.compare([Path("my-qwen")])["total"].tolist() == [TOTAL]


def test_python_m_paramcount_runs_the_command_line(run: Runner) -> None:
    code = "import runpy; runpy.run_module('paramcount', run_name='__main__', alter_sys=True)"
    done = run_process("gpt2-small", "--csv", code=code)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, run("gpt2-small", "--csv").out, b"")
    assert run_process("gpt2-smal", code=code).returncode == 2
