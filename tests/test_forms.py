"""Sizes kept in other forms than a config.json with model_type: read as what they are, refused by name, never guessed.

Each file of tests/data/forms.json has its source; its count equals that of the same model in the zoo, that of the
config.json that another program makes of it, or the reference's own.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.huggingface.forms import FORMS, find_form
from tests.comparison import load_configs
from tests.refusing import assert_one_line, model_error
from tests.running import Runner
from tests.test_config_files import write_config

FILES = json.loads((Path(__file__).parent / "data" / "forms.json").read_text(encoding="utf-8"))
BY_NAME = {row["name"]: row for row in FILES}
LLAMA = BY_NAME["Llama 3 8B"]["content"]
BERT = BY_NAME["BERT"]["content"]
MAMBA = BY_NAME["Mamba 2.8B"]["content"]
GPT2_SIZES = {"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}

pytestmark = pytest.mark.usefixtures("_in_an_empty_directory")


def change(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The document with other values; without the keys that are `...`."""
    return {key: value for key, value in {**document, **changes}.items() if value is not ...}


# ---- counts


@pytest.mark.parametrize("row", FILES, ids=lambda row: row["name"])
def test_the_count_is_that_of_the_same_model_in_the_usual_form(row: dict[str, Any]) -> None:
    if "total" in row:
        expected, components = row["total"], None
    else:
        other = pc.count(row.get("equals") or row["config"])
        expected, components = other.total, other.components
    count = pc.count(row["content"])
    assert count.total == expected
    assert components is None or count.components == components


@pytest.mark.parametrize("row", FILES, ids=lambda row: row["name"])
def test_exactly_one_form_recognises_a_file_and_a_note_says_so(row: dict[str, Any]) -> None:
    assert [form.name for form in FORMS if form.matches(row["content"])] == [row["form"]]
    model = pc.load(row["content"])
    expected = f"read as {row['form']}"
    if row["form"] == "a config without model_type":
        expected = f"model_type is missing; read as {row['type']} by its keys, counted as "
    assert model.reading.notes[0].startswith(expected)
    assert model.warnings == ()


def test_every_form_has_a_file() -> None:
    assert {form.name for form in FORMS} == {row["form"] for row in FILES}


def test_a_config_json_of_the_usual_form_is_no_other() -> None:
    for path in sorted((Path(__file__).parent / "data" / "config_truth").glob("*.json")):
        assert find_form(json.loads(path.read_text(encoding="utf-8"))["config"]) is None, path.name


@pytest.mark.filterwarnings("ignore::paramcount.errors.ConfigWarning")
def test_a_config_that_lost_its_model_type_is_counted_as_before_or_refused() -> None:
    read, refused = 0, set()
    for id, config in load_configs().items():
        lost = {key: value for key, value in config.items() if key not in ("model_type", "architectures", "auto_map")}
        if find_form(lost) is None:
            continue
        try:
            total = pc.count(lost).total
        except pc.ParamcountError as error:
            refused.add(str(error).partition(" (")[0])
            continue
        read += 1
        assert total == pc.count({**lost, "model_type": config["model_type"]}).total, id
    assert read > 80
    assert refused == {"model_type is missing, and the keys fit several types"}


JUNK: list[Any] = [None, -1, 0, "x", [], {}, [1, {}], {"a": {}}, True, 0.5, 1e308, 10**30, "\x1b[31m"]


@pytest.mark.parametrize("row", FILES, ids=lambda row: row["name"])
@pytest.mark.filterwarnings("ignore::paramcount.errors.ConfigWarning")
def test_any_value_is_counted_or_refused_in_one_line(row: dict[str, Any]) -> None:
    content = row["content"]
    blocks = [key for key, value in content.items() if isinstance(value, dict)]
    changed = [{**content, key: junk} for key in content for junk in JUNK]
    changed += [
        {**content, key: {**content[key], inner: junk}} for key in blocks for inner in content[key] for junk in JUNK
    ]
    for document in changed:
        try:
            assert pc.count(document).total > 0
        except pc.ParamcountError as error:
            assert_one_line(str(error))


# Meta's code: int(2 · 4 · dim / 3), times the multiplier, rounded up to the multiple.
@pytest.mark.parametrize(
    ("changes", "d_ff"),
    [
        ({}, 14336),
        ({"ffn_dim_multiplier": ...}, 11264),
        ({"ffn_dim_multiplier": ..., "multiple_of": 256}, 11008),
        ({"dim": 5120, "n_heads": 40, "ffn_dim_multiplier": ..., "multiple_of": 256}, 13824),
        ({"dim": 6656, "n_heads": 52, "n_kv_heads": ..., "ffn_dim_multiplier": ..., "multiple_of": 256}, 17920),
    ],
)
def test_the_hidden_size_of_metas_mlp_is_derived(changes: dict[str, Any], d_ff: int) -> None:
    assert vars(pc.load(change(LLAMA, **changes)).sizes)["d_ff"] == d_ff


@pytest.mark.parametrize(("multiple", "rows"), [(8, 50280), (16, 50288), (1, 50277)])
def test_the_vocabulary_of_mamba_is_padded(multiple: int, rows: int) -> None:
    assert vars(pc.load(change(MAMBA, pad_vocab_size_multiple=multiple)).sizes)["vocab_size"] == rows


def test_llama_3_2_with_a_tied_head_is_counted_as_metas_code_builds_it_and_the_warning_names_the_difference() -> None:
    sizes = {"dim": 2048, "n_layers": 16, "n_heads": 32, "ffn_dim_multiplier": 1.5, "multiple_of": 256}
    with pytest.warns(pc.ConfigWarning, match="262,668,288 fewer"):
        count = pc.count(change(LLAMA, **sizes))
    assert count.total - 262_668_288 == pc.count("llama-3.2-1b").total


# ---- entry points


def test_files_folders_and_standard_input_are_read(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config("meta/params.json", LLAMA)
    write_config("first/bert_config.json", BERT)
    total = pc.count("llama-3-8b").total
    assert pc.count("./meta").total == pc.count("meta/params.json").total == total
    assert pc.load("./meta").name == "meta"
    assert pc.count("first/").total == BY_NAME["BERT"]["total"]
    done = run("show", "meta/params.json", "--json")
    assert json.loads(done.out)["total"] == total
    done = run("compare", "./meta", "./first", "--csv", "--columns", "total")
    assert [int(line.split(",")[1]) for line in done.out.splitlines()[1:]] == [total, BY_NAME["BERT"]["total"]]
    assert run("memory", "./meta").err == "note: read as Meta's params.json\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(LLAMA).encode())))
    assert pc.count("-").total == total


def test_a_config_json_comes_before_other_files_of_a_folder() -> None:
    write_config("both/params.json", LLAMA)
    write_config("both/config.json", {"model_type": "gpt2"})
    with pytest.warns(pc.ConfigWarning):
        assert pc.load("./both").architecture == "gpt2"


def test_scan_counts_the_other_forms_too(run: Runner) -> None:
    write_config("s/meta/params.json", LLAMA)
    write_config("s/page/params.json", {"name": "A page", "tagline": ""})
    write_config("s/gpt/config.json", {"model_type": "gpt2", **GPT2_SIZES})
    done = run("scan", "s", "--csv", "--columns", "total")
    total = pc.count("llama-3-8b").total
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["id,total", f"gpt,{124_439_808}", f"meta/params.json,{total}"]


def test_add_writes_an_entry_with_the_sizes(run: Runner) -> None:
    write_config("meta/params.json", LLAMA)
    assert run("add", "meta/params.json", "--id", "my-llama", "--into", "own").code == 0
    assert "d_ff: 14336" in Path("own/own/my-llama.yaml").read_text(encoding="utf-8")


# ---- errors


def test_the_location_stands_before_the_keys_of_the_file() -> None:
    write_config("meta/params.json", change(LLAMA, n_kv_heads=7))
    assert model_error("meta/params.json").startswith("meta/params.json: n_kv_heads = 7 does not divide n_heads = 32")


def test_unknown_keys_that_look_like_sizes_are_reported() -> None:
    with pytest.warns(pc.ConfigWarning, match="ignored n_memory_layers"):
        pc.load(change(LLAMA, n_memory_layers=4))
