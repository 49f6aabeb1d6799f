"""The zoo is complete, sourced and equal to its independent truth, tensor shape by tensor shape."""

from __future__ import annotations

import csv
import functools
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.architectures import ARCHITECTURES, architecture, split_name
from paramcount.cli.commands import COMMANDS
from paramcount.costs import columns
from paramcount.costs.flops import measure_flops
from paramcount.counting.count import count_sizes
from paramcount.database import store
from paramcount.database.export import export_zoo
from paramcount.database.tables import find_table
from paramcount.errors import join_place
from paramcount.formats.strict_yaml import read_yaml
from paramcount.huggingface.config import read_config
from paramcount.huggingface.fields import read_values
from paramcount.output.tables import format_csv_value
from paramcount.sizes import Sizes, build_as_reference
from paramcount.sizes.rules import validate_sizes
from paramcount.zoo import catalog, names, packaged
from paramcount.zoo.checks import run_checks
from paramcount.zoo.entries import read_entry
from paramcount.zoo.writing import format_entry
from tests.batches import in_batches
from tests.comparison import count_anew, count_shapes, find_differences, load_configs, load_reference
from tests.refusing import Refuse
from tests.structures import ROWS, ZOO
from tests.type_files import load_all

DATA = Path(__file__).parent / "data"
TRUTH = sorted(path.stem for path in (DATA / "truth").glob("*.json"))

# Published figures that are wrong or follow a convention of their own: (id, what it says it counts, figure).
MISFITS = {
    ("bert-base-cased", "total", "110M"),  # rounded to tens; of the uncased one 109.5 M
    ("bert-large-cased", "total", "340M"),  # 333.6 M, with the head for next sentences 334.7 M
    ("bert-large-uncased", "total", "340M"),
    ("t5-base", "total", "220M"),
    ("t5-large", "total", "770M"),  # 737.7 M
    ("deepseek-v2-lite", "active", "2.4B"),  # without the input table: 2,451,435,008
    ("deepseek-v3", "active", "36.7B"),  # with one of the two tables it would be 36.6
    ("glm-4.5", "total", "355B"),  # with the MTP layer and without both tables: 355,233,991,936
    ("glm-5.3-flash", "total", "320B"),  # with the MTP layer, rounded to tens
    ("grok-1", "total", "314B"),  # 314.9 B without the token embedding
    ("inkling-975b", "total", "975B"),  # with experts in the two dense layers: 975,431,883,842
    ("inkling-small-276b", "total", "276B"),  # likewise: 276,309,541,930
    ("gpt-3-13b", "total", "13.0B"),  # Table 2.1; Table D.1 of the same paper says 12,850 M
    ("gpt-3-medium", "total", "350M"),  # Table 2.1; Table D.1 says 356 M
    ("deepseek-ocr", "checkpoint", "3,336,106,240"),  # with CLIP's patch embedding of 602,112, which nothing reads
    ("layoutlmv3-base", "total", "133M"),  # 125.3 M without the heads of pre-training
    ("layoutxlm-base", "total", "345M"),  # 368.7 M; the paper says "approximately"
    ("gpt-3", "total", "175.0B"),  # Table 2.1; Table D.1 says 174,600 M
    ("llama-3.2-90b-vision", "total", "88.8B"),  # the released files hold 88,593,355,323
    ("mathstral-7b", "total", "7.3B"),  # 7.248 B rounded up
    ("mistral-7b-v0.3", "total", "7.3B"),
    ("nemotron-3-nano-30b-a3b", "checkpoint", "31,577,937,344"),  # without the routing bias, which is a buffer
    ("nemotron-3-nano-omni-30b-a3b", "total", "33,015,546,816"),  # without the reference's layer scales
    ("qwen2-7b", "total", "7.07B"),  # one table of 545 M left out
    ("qwen2-7b", "non_embedding", "5.98B"),  # a third table subtracted
    ("qwen2.5-14b", "non_embedding", "13.1B"),
    ("qwen2.5-32b", "total", "32.5B"),
    ("qwen2.5-32b", "non_embedding", "31.0B"),
    ("qwen2.5-72b", "non_embedding", "70.0B"),
    ("qwq-32b", "total", "32.5B"),
    ("qwq-32b", "non_embedding", "31.0B"),
}

# Its config.json also names the code that it was released with, and is counted as that; the entry is counted as the
# reference has the same model.
WITH_CODE = ("nomic-embed-text-v1",)
WITH_TOWER = ("llava-v1.5-7b",)  # its config.json has no vision_config, but the name of a model that gives one


def load_truth(name: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((DATA / "truth" / f"{name}.json").read_text(encoding="utf-8"))
    return facts


@in_batches("id", sorted(load_reference()), size=80)
def test_an_entry_equals_the_reference_in_every_total_and_every_tensor_shape(id: str) -> None:
    assert find_differences(id, count_anew(id)) == []


@in_batches("name", TRUTH, size=80)
def test_a_published_config_json_and_its_entry_have_the_reference_count(name: str) -> None:
    facts = load_truth(name)
    cls = architecture(facts["config"]["model_type"])
    for count in (
        pc.count(facts["zoo_id"]),
        count_sizes(validate_sizes(cls, read_values(cls, facts["config"]).values)),
    ):
        assert (count.total, count.embedding, count.lm_head, count.buffers) == (
            facts["total"],
            facts["embedding"],
            facts["lm_head"],
            facts["buffers"],
        )
        assert count_shapes(count) == Counter(facts["shapes"])


def list_declarations(sizes: Sizes) -> set[type[Sizes]]:
    """The classes of a model's sizes: its own and those of its sections."""
    inner = (getattr(sizes, name) for name in type(sizes).fields)
    return {type(sizes)}.union(*(list_declarations(part) for part in inner if isinstance(part, Sizes)))


def test_every_model_type_has_an_entry_or_a_reason() -> None:
    """A type has an entry if a model or a section of one has its declaration, or one that adds to it.

    Its file says for every other type which source is missing.
    """
    found = set[type[Sizes]]().union(*(list_declarations(zoo.load_entry(id).sizes) for id in ZOO))
    types = [name for name in ARCHITECTURES if not split_name(name)[1]]
    missing = [name for name in types if not any(issubclass(each, architecture(name)) for each in found)]
    assert list(load_all("without_entry")) == sorted(missing)


@in_batches("path", sorted(zoo.CONFIGS.glob("*/*.yaml")), ids=lambda path: path.stem, size=80)
def test_every_entry_is_written_as_paramcount_writes_it(path: Path) -> None:
    document = read_yaml(path)
    assert (document["id"], document["family"]) == (path.stem, path.parent.name)
    assert format_entry(read_entry(path)) == path.read_text(encoding="utf-8")
    if "config" in document:
        sizes = zoo.load_entry(path.stem).sizes
        fields = type(sizes).fields.items()
        assert document["config"].keys() == {name for name, field in fields if field.unstated != getattr(sizes, name)}
        assert "config" in [source["id"] for source in document["sources"]]


@in_batches("id", list(zoo.list_ids()), size=80)
def test_names_are_read_as_yaml_reads_them(id: str) -> None:
    model = zoo.load_entry(id)
    assert zoo.list_names(id) == [id, model.name, *([model.hf] if model.hf else []), *model.aliases]


def test_every_entry_has_the_published_config_that_it_cites() -> None:
    assert list(load_configs()) == sorted(ZOO)


def select_same_keys(document: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a config.json that `keys` has, in its sections too."""
    return {
        key: select_same_keys(document[key], value)
        if isinstance(value, Mapping) and key in document
        else document.get(key)
        for key, value in keys.items()
    }


@in_batches("id", ZOO, size=80)
def test_the_sizes_and_settings_of_an_entry_are_those_of_its_published_config(id: str) -> None:
    document = load_configs()[id]
    if id in WITH_CODE:
        assert pc.count(document).total == pc.count(id).total
        document = {key: value for key, value in document.items() if key != "auto_map"}
    model, config = zoo.load_entry(id), read_config(document)
    assert (config.architecture, config.sizes) == (model.architecture, build_as_reference(model.sizes))
    settings = (model.entry and model.entry.settings) or {}
    read = config.reading.document if id in WITH_TOWER else document
    assert select_same_keys(read, settings) == settings


@in_batches("id", list(zoo.list_ids()), size=80)
def test_every_source_is_used_and_every_entry_has_one(id: str) -> None:
    model = zoo.load_entry(id)
    used = {figure.source for figure in model.published} | {claim.source for claim in model.claims}
    used |= {figure.corrected for figure in model.published if figure.corrected}
    spare = (
        {source.id for source in model.sources}
        - used
        - ({"config"} if model.config else set())
        - ({"release"} if model.released else set())
        - ({"lm_head"} if model.config is not None and build_as_reference(model.config) is not model.config else set())
        - ({"settings"} if model.entry is not None and model.entry.settings is not None else set())
    )
    assert model.sources
    assert spare == set()


@in_batches("id", ZOO, size=80)
def test_published_figures_fit_the_count_or_are_listed_as_misfits(id: str) -> None:
    model = zoo.load_entry(id)
    wrong = {(id, check.what, check.text) for check in run_checks(model, pc.count(id)) if check.ok is False}
    assert wrong == {misfit for misfit in MISFITS if misfit[0] == id}


def test_entries_say_what_a_second_reader_found_in_their_sources() -> None:
    with (DATA / "reread.csv").open(encoding="utf-8", newline="") as file:
        found = [(row["id"], row["size"], row["size_value"], row["figure"]) for row in csv.DictReader(file)]
    said = []
    for id, size, _, figure in found:
        model = zoo.load_entry(id)
        value = functools.reduce(getattr, size.split("."), model.sizes)
        published = [str(each.value) for each in model.published]
        said.append((id, size, str(value), figure if figure in published else ",".join(published)))
    assert said == found


def test_no_release_date_is_the_date_of_a_paper() -> None:
    entries = [zoo.load_entry(id) for id in zoo.list_ids()]
    papers = [model.id for model in entries for each in model.sources if (each.id, each.kind) == ("release", "paper")]
    assert papers == []


def test_only_entries_without_a_reference_count_are_unverified() -> None:
    assert {id for id in ZOO if isinstance(zoo.load_entry(id).checked, str)} == set(ZOO) - load_reference().keys()


def test_estimates_have_claims_and_no_sizes() -> None:
    estimates = [zoo.load_entry(id) for id in zoo.list_ids() if zoo.load_entry(id).estimate]
    assert [model.id for model in estimates] == ["gpt-4", "gpt-4o"]
    for model in estimates:
        assert model.claims and model.config is None
        with pytest.raises(pc.ParamcountError, match="third-party estimate"):
            pc.count(model.id)


def test_no_two_models_share_a_spelling_and_no_family_has_the_name_of_a_model() -> None:
    owners: dict[str, set[str]] = {}
    for id in zoo.list_ids():
        model = zoo.load_entry(id)
        for name in (id, model.name, *([model.hf] if model.hf else []), *model.aliases):
            owners.setdefault(names.normalize_name(name), set()).add(id)
    assert {name: ids for name, ids in owners.items() if len(ids) > 1} == {}
    assert {family for family in zoo.list_families() if names.normalize_name(family) in owners} == set()
    assert set(COMMANDS) & (set(owners) | set(zoo.list_families())) == set()


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_the_csv_of_the_zoo_is_up_to_date(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`every`: of so many models the FLOPs of one are computed anew, which takes longer than all else."""
    frozen = {id: int(row["flops_per_token"] or 0) or None for id, row in ROWS.items()}
    chosen = {*list(ROWS)[::every]}
    monkeypatch.setattr(
        columns,
        "measure_flops",
        lambda model: measure_flops(model) if model.id in chosen else SimpleNamespace(flops_per_token=frozen[model.id]),
    )
    monkeypatch.setattr(store, "IS_INSTALLED", False)
    monkeypatch.setenv("PARAMCOUNT_CACHE", "")
    text = (zoo.CONFIGS / "zoo.csv").read_text(encoding="utf-8")
    assert text.encode() == export_zoo("zoo.csv"), "make it anew: python -m tests.refresh_tables"


@pytest.mark.parametrize("name", sorted(packaged.PACKAGED.keys() - {"models"}))
def test_the_other_tables_in_the_package_are_up_to_date(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "IS_INSTALLED", False)
    monkeypatch.setenv("PARAMCOUNT_CACHE", "")
    text = (zoo.CONFIGS / packaged.PACKAGED[name]).read_bytes()
    assert text == export_zoo(packaged.PACKAGED[name], name), "make it anew: python -m tests.refresh_tables"


def test_no_context_is_longer_than_the_positions_of_its_tokens() -> None:
    """A table of positions whose first row for a token is not its first has fewer positions than rows."""
    longer = []
    for id in zoo.list_ids():
        if (model := zoo.load_entry(id)).estimate or not model.context_length:
            continue
        first = getattr(model.sizes, "first_position", 0)
        if isinstance(first, int) and first:
            tables = [t.shape[0] for t in pc.count(id).tensors if t.name.endswith("position_embeddings.weight")]
            longer += [id] if any(model.context_length > rows - first for rows in tables) else []
    assert longer == []


@pytest.mark.parametrize("name", packaged.PACKAGED)
def test_an_installed_package_computes_no_table_that_it_brings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value that the file states comes back, with its type."""
    for attribute, value in (("IS_INSTALLED", True), ("CACHES", False)):
        monkeypatch.setattr(store, attribute, value)
    monkeypatch.setattr(store, "load_entry", lambda id: pytest.fail(f"{id} is computed"))
    rows = store.read_rows(find_table(name))
    with (zoo.CONFIGS / packaged.PACKAGED[name]).open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert [[str(format_csv_value(value)) for value in row] for row in rows] == [list(row.values()) for row in written]


def test_an_installation_without_the_zoo_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuse: Refuse
) -> None:
    expected = {"gone": "cannot read the zoo: No such file or directory", "empty": "the zoo is empty"}
    (tmp_path / "empty").mkdir()
    for name, problem in expected.items():
        monkeypatch.setattr(catalog, "CONFIGS", tmp_path / name)
        catalog.clear_caches()
        message = join_place(tmp_path / name, problem) + " (expected a complete installation of paramcount)"
        for args in (["gpt2-small"], ["list"], ["compare", "gpt*"]):
            assert refuse(*args) == message
    catalog.clear_caches()
