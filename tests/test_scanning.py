"""`paramcount scan`: every config below a directory, none of which stops the others."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest

import paramcount as pc
from paramcount.scanning import scanned
from tests.refusing import command_refusal
from tests.running import Run, Runner
from tests.test_config_files import TOTAL, cached, written


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_config_below_a_directory_is_a_row(run: Runner) -> None:
    written("store/Qwen3-8B/config.json")
    written("store/deep/er/gpt2/config.json", {"model_type": "gpt2"})
    cached("a/b", "aaa", home="store")
    done = run("scan", "store", "--csv")
    assert (done.code, done.err) == (0, "")
    rows = {row["id"]: int(row["total"]) for row in csv.DictReader(io.StringIO(done.out))}
    assert rows == {"Qwen3-8B": TOTAL, "deep/er/gpt2": 124_439_808, "hub/models--a--b/snapshots/aaa": TOTAL}


def test_what_cannot_be_counted_is_listed_at_the_end_and_the_exit_code_is_1(run: Runner) -> None:
    written("s/good/config.json", {"model_type": "gpt2"})
    written("s/broken/config.json", "{")
    written("s/vae/config.json", {"_class_name": "AutoencoderKL", "_diffusers_version": "0.30"})
    Path("s/gone").mkdir()
    Path("s/gone/config.json").symlink_to("nowhere")
    done = run("scan", "s")
    assert done.code == 1
    assert done.out.splitlines()[2].split() == ["good", "124,439,808", "124,439,808", "249", "MB", "gpt2"]
    assert done.err.splitlines() == [
        "not counted: broken: line 1 column 2: ends in the middle (accepted: a JSON object)",
        "not counted: gone: is a broken link",
        "not counted: vae: is a diffusion pipeline's config (accepted: a model's config.json)",
        "3 of 4 configs could not be counted",
    ]


def test_columns_and_order_are_those_of_a_comparison(run: Runner) -> None:
    written("s/a/config.json", {"model_type": "gpt2"})
    written("s/b/config.json")
    done = run("scan", "s", "--columns", "total,n_layers", "--sort", "-total", "--csv")
    assert done == Run(0, f"id,total,n_layers\nb,{TOTAL},36\na,124439808,12\n", "")
    assert json.loads(run("scan", "s", "--json").out)["models"][0]["total"] == 124_439_808


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nowhere"], "nowhere: is not a directory (accepted: a directory with config.json files below it)"),
        (["empty"], "empty: holds no config.json, nor does any directory below it (accepted: a cache or a model store)"),
        (["s", "--columns", "totl"], "unknown column 'totl' (accepted: "),
    ],
)
def test_what_cannot_be_scanned_is_refused(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    written("s/a/config.json", {"model_type": "gpt2"})
    assert command_refusal(capsys, "scan", *args).startswith(message)


def test_links_in_a_circle_and_files_that_cannot_be_read_stop_nothing() -> None:
    written("s/a/config.json")
    Path("s/a/again").symlink_to("..")
    os.mkfifo("s/pipe")
    Path("s/dir").mkdir()
    Path("s/dir/config.json").mkdir()
    found = scanned(Path("s"))
    assert [row["id"] for row in found.rows] == ["a"]
    assert found.errors == []


def test_a_hostile_directory_name_is_printed_in_printable_characters() -> None:
    written("s/\x1b[31m/config.json")
    written("s/\u202e/config.json", "[]")
    found = scanned(Path("s"))
    assert [row["id"] for row in found.rows] == [r"\x1b[31m"]
    assert found.errors == [(r"\u202e", "holds an array (accepted: a JSON object)")]


def test_a_config_at_the_top_is_called_by_its_directory() -> None:
    written("s/config.json")
    assert [row["id"] for row in scanned(Path("s")).rows] == ["."]


# ---- one model opened


def test_equal_layers_stand_together(run: Runner) -> None:
    rows = json.loads(run("deepseek-v3", "--by", "layer", "--json").out)["by_layer"]
    assert [(row["where"], row["kind"], row["layers"], row["each"]) for row in rows] == [
        ("embedding", "", 1, 926_679_040),
        ("model.layers 0–2", "dense", 3, 583_483_392),
        ("model.layers 3–60", "moe", 58, 11_507_286_016),
        ("norm", "", 1, 7_168),
        ("lm_head", "", 1, 926_679_040),
    ]
    assert sum(row["parameters"] for row in rows) == 671_026_404_352


@pytest.mark.parametrize("id", ["gpt2-small", "llama-3.1-8b", "gpt-oss-20b", "deepseek-v3", "llama-3.2-11b-vision", "qwen1.5-moe-a2.7b", "gpt-1"])
@pytest.mark.parametrize("by", ["layer", "part", "tensor"])
def test_what_is_opened_sums_to_the_total(run: Runner, id: str, by: str) -> None:
    rows = json.loads(run(id, "--by", by, "--json").out)[f"by_{by}"]
    assert sum(row["parameters"] for row in rows if row.get("part") != "mtp") == pc.count(id).total
    if by == "part":
        assert sum(row["active"] for row in rows) == pc.count(id).active
    for width in ("80", "200"):
        assert run(id, "--by", by).code == 0, width


def test_two_ways_of_opening_at_once_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_refusal(capsys, "gpt2-small", "--by", "layer", "--keys") == "--by and --keys at once (accepted: one of them)"


# ---- what is supported


def test_architectures_lists_every_model_type_with_its_reference_class(run: Runner) -> None:
    from paramcount.architectures import ARCHITECTURES, architecture

    rows = json.loads(run("architectures", "--json").out)["architectures"]
    assert {name for row in rows for name in row["model_types"]} >= {name.partition(".")[0] for name in ARCHITECTURES}
    for row in rows:
        if row["architecture"] in ARCHITECTURES:
            assert row["reference"] == architecture(row["architecture"]).reference
            assert row["about"]
    assert run("architectures").code == 0
