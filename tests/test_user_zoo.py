"""The user's own entries: adding, finding, validating; the JSON Schema of an entry."""

from __future__ import annotations

import datetime
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.formats.strict_yaml import read_yaml
from paramcount.zoo.json_schema import make_entry_schema
from tests.batches import in_batches
from tests.conftest import forget_zoo
from tests.refusing import Refuse
from tests.running import Runner
from tests.structures import ZOO, pick_structures

TINY = {
    "model_type": "llama",
    "vocab_size": 1000,
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "rms_norm_eps": 1e-5,
}
# two tables, q k v o, three matrices of the MLP, two norms per layer and one at the end
TINY_TOTAL = 2 * 1000 * 256 + 4 * (4 * 256 * 256 + 3 * 256 * 512 + 2 * 256) + 256


@pytest.fixture(autouse=True)
def _config_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_zoo: Path) -> None:
    """A config.json in the current directory, and an empty user zoo."""
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text(json.dumps(TINY), encoding="utf-8")


def test_an_added_model_is_known_to_every_command_and_marked(run: Runner, own_zoo: Path) -> None:
    found = run("add", "config.json", "--id", "my-model", "--publisher", "Me", "--source", "https://example.org/x")
    assert found.out == f"Wrote {own_zoo}/own/my-model.yaml: llama, {TINY_TOTAL:,} parameters, unverified.\n"
    assert pc.count("my-model").total == TINY_TOTAL
    assert "your own entry, unverified" in run("my-model").out
    assert [model["id"] for model in json.loads(run("list", "own", "--json").out)["models"]] == ["my-model"]
    assert "my-model" in run("compare", "My Model", "gpt2-small").out
    assert run("memory", "my-model").code == 0
    entry = read_yaml(own_zoo / "own/my-model.yaml")
    assert entry["settings"]["rms_norm_eps"] == 1e-5
    assert entry["sources"][0]["ref"] == "https://example.org/x"
    assert entry["checked"] == "unverified"


def test_an_added_multimodal_model_keeps_its_language_model_and_encoder(
    run: Runner, tmp_path: Path, own_zoo: Path
) -> None:
    text = {**TINY, "vocab_size": 32064}
    vision = {"model_type": "clip_vision_model", "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
    document = {"model_type": "llava", "text_config": text, "vision_config": vision}
    (tmp_path / "llava.json").write_text(json.dumps(document), encoding="utf-8")
    total = pc.count(tmp_path / "llava.json").total
    assert run("add", "llava.json", "--id", "my-llava").code == 0
    assert pc.count("my-llava").total == total
    assert pc.load("my-llava").sizes == pc.load(tmp_path / "llava.json").sizes
    entry = read_yaml(own_zoo / "own/my-llava.yaml")
    assert entry["settings"] == {"text_config": {"rms_norm_eps": 1e-5}}  # none of vision_config


@pytest.mark.parametrize(
    ("id", "problem"),
    [
        ("gpt2-small", "--id = gpt2-small names the built-in model gpt2-small (expected another id)"),
        ("gpt2", "--id = gpt2 names the built-in model gpt2-small (expected another id)"),
        ("qwen", "--id = qwen is a family (expected another id)"),
        ("list", "--id = list is a command (expected another id)"),
        ("../x", "--id = '../x' (expected lower-case letters, digits, dots and hyphens)"),
        ("X", "--id = 'X' (expected lower-case letters, digits, dots and hyphens)"),
    ],
)
def test_an_id_that_is_taken_or_invalid_is_refused(id: str, problem: str, refuse: Refuse, own_zoo: Path) -> None:
    assert refuse("add", "config.json", "--id", id) == problem
    assert not own_zoo.exists()


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--name", "x" * 2001, "a string of at most 2000 characters"),
        ("--publisher", "\x1b[31mx", "a string of printable characters"),
        ("--publisher", "", "a non-empty string"),
        ("--source", "a\nb", "a string of printable characters"),
        ("--name", "\udcff", "a Unicode string"),
    ],
)
def test_a_value_that_no_entry_can_have_is_refused(
    option: str, value: str, expected: str, refuse: Refuse, own_zoo: Path
) -> None:
    message = refuse("add", "config.json", "--id", "x", option, value)
    assert message.startswith(option)
    assert message.endswith(f" (expected {expected})")
    assert not own_zoo.exists()


def test_an_added_model_without_a_head_names_its_class(run: Runner, own_zoo: Path) -> None:
    """109,482,240: BertModel of transformers with its default sizes, as BAAI/bge-base-en-v1.5 has them."""
    document = {"model_type": "bert", "architectures": ["BertModel"]}
    Path("encoder.json").write_text(json.dumps(document), encoding="utf-8")
    assert run("add", "encoder.json", "--id", "my-encoder").code == 0
    assert "\narchitecture: bert\nreference: BertModel\n" in (own_zoo / "own/my-encoder.yaml").read_text("utf-8")
    for count in (pc.count("my-encoder"), pc.count("bge-base-en-v1.5")):
        assert (count.total, count.lm_head, count.not_counted) == (109_482_240, 0, ("lm_head",))
        assert count.reference == "BertModel"


def test_a_class_with_an_lm_head_keeps_it_whatever_its_name() -> None:
    """ChatGLMModel of older files has the LM head of ChatGLMForConditionalGeneration."""
    model = pc.load("glm-4-9b")
    named = {"architecture": model.architecture, "config": model.sizes.to_dict(), "reference": "ChatGLMModel"}
    assert pc.count(named).components == pc.count(model).components
    assert pc.count(named).not_counted == ()


def test_what_cannot_be_an_entry_is_refused(refuse: Refuse, run: Runner, own_zoo: Path) -> None:
    assert refuse("add", "gpt2-small", "--id", "x") == ("gpt2-small is a zoo entry already (expected a config.json)")
    language_model = {"model_type": "llava", "vision_config": {"model_type": "vit"}}
    Path("part.json").write_text(json.dumps(language_model), encoding="utf-8")
    assert refuse("add", "part.json", "--id", "x") == (
        "part.json is counted without vision_config, projector (expected a model that is counted whole)"
    )
    run("add", "config.json", "--id", "x")
    again = refuse("add", "config.json", "--id", "x")
    assert again == f"{own_zoo}/own/x.yaml: exists already (expected another --id, or --replace)"
    assert run("add", "config.json", "--id", "x", "--replace").code == 0


def test_an_entry_cannot_shadow_a_built_in_model(run: Runner, own_zoo: Path) -> None:
    run("add", "config.json", "--id", "x")
    path = own_zoo / "own" / "gpt2-small.yaml"
    path.write_text((own_zoo / "own/x.yaml").read_text().replace("id: x", "id: gpt2-small"))
    forget_zoo()
    assert pc.count("gpt2-small").total == 124_439_808
    assert f"{path} has the id of the built-in model gpt2-small (expected another id)" in run("list").err
    found = json.loads(run("validate", "--json").out)
    assert found["entries"][0]["errors"] == ["gpt2-small names the built-in model gpt2-small"]


def test_validate_reports_every_problem_and_the_built_in_zoo_has_none(run: Runner, own_zoo: Path) -> None:
    run("add", "config.json", "--id", "x")
    text = (own_zoo / "own/x.yaml").read_text()
    (own_zoo / "own/y.yaml").write_text(text.replace("d_ff: 512", "d_fff: 512"))
    (own_zoo / "own/z.yaml").write_text(
        text.replace("id: x", "id: z").replace("checked: unverified", "checked: {reference: R, total: 7}")
    )
    (own_zoo / "own/w.yaml").write_text("[1, 2")
    found = run("validate", "--json")
    errors = {Path(entry["path"]).stem: entry["errors"] for entry in json.loads(found.out)["entries"]}
    assert found.code == 1
    assert errors["x"] == []
    assert errors["y"] == [
        "config.d_fff: unknown field (expected d_ff, d_head, d_model, n_heads, tie_word_embeddings or 5 others); "
        "did you mean d_ff?"
    ]
    assert errors["z"] == [f"reference 7 differs from paramcount's {TINY_TOTAL:,}"]
    assert len(errors["w"]) == 1
    whole = json.loads(run("validate", str(zoo.CONFIGS), "--json").out)
    assert whole["ok"] and len(whole["entries"]) == len(list(zoo.CONFIGS.glob("*/*.yaml")))


@pytest.mark.parametrize("place", ["own/y.yaml", "x.yaml", "other/x.yaml", "own/own/x.yaml"])
def test_validate_reports_an_entry_that_no_command_finds(run: Runner, own_zoo: Path, place: str) -> None:
    run("add", "config.json", "--id", "x")
    path = own_zoo / place
    path.parent.mkdir(parents=True, exist_ok=True)
    (own_zoo / "own/x.yaml").rename(path)
    forget_zoo()
    found = run("validate", "--json")
    assert found.code == 1
    errors = [f"id x of family own is in {place} (expected <family>/<id>.yaml)"]
    assert [entry["errors"] for entry in json.loads(found.out)["entries"]] == [errors]
    assert run("validate", str(path)).code == 0  # a file outside of a zoo may have any name


def test_without_entries_or_files_validate_says_so(refuse: Refuse) -> None:
    assert refuse("validate") == ("you have no entries yet (expected a PATH, or an entry from `paramcount add`)")
    assert refuse("validate", "gone.yaml") == "gone.yaml does not exist (expected a file or directory)"


# ---- the JSON Schema of an entry


def test_the_schema_of_an_entry_is_printed(run: Runner) -> None:
    assert json.loads(run("schema", "entry").out) == make_entry_schema()


def make_plain(node: Any) -> Any:
    """Dates as an editor reads them: as strings."""
    if isinstance(node, dict):
        return {key: make_plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [make_plain(value) for value in node]
    return node.isoformat() if isinstance(node, datetime.date) else node


@cache
def read_entry_schema() -> Any:
    """A validator of entries, as an editor has it."""
    return pytest.importorskip("jsonschema").Draft202012Validator(make_entry_schema())


@in_batches("id", [*pick_structures(every=10), *sorted({*zoo.list_ids()} - {*ZOO})], size=80)
def test_an_entry_is_valid_in_an_editor(id: str) -> None:
    path = zoo.find_path(id)
    assert path is not None
    assert [error.message for error in read_entry_schema().iter_errors(make_plain(read_yaml(path)))] == []


def test_mistakes_in_an_entry_are_found_in_an_editor() -> None:
    check = read_entry_schema()
    document = make_plain(read_yaml(zoo.CONFIGS / "gpt/gpt2-small.yaml"))
    for place, value in ((("config", "d_modell"), 3), (("config", "d_ff"), "3072"), (("licence",), "MIT")):
        wrong = json.loads(json.dumps(document))
        target = wrong["config"] if place[0] == "config" else wrong
        target[place[-1]] = value
        assert not check.is_valid(wrong), place
