"""The output of `paramcount verify MODEL CHECKPOINT` for a tiny Mixtral as the reference saves it: intact, sharded and
damaged.
"""

from __future__ import annotations

import csv
import io
import json
from math import prod
from pathlib import Path

import pytest

from paramcount.counting.components import COMPONENTS
from tests.headers import (
    Tensors,
    assign_shards,
    load_saved,
    make_header,
    total_bytes,
    write_file,
    write_index,
    write_shards,
)
from tests.refusing import Refuse
from tests.running import Runner

TENSORS = load_saved("mixtral").tensors
TOTAL = sum(prod(shape) for _, shape in TENSORS.values())  # nothing but parameters, each once
ACCEPTED = "(expected a .safetensors or .gguf file, a shard index, a saved header, or a directory with one of them)"


@pytest.fixture(autouse=True)
def _in_a_folder_with_the_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m").mkdir()
    Path("m/config.json").write_text(json.dumps(load_saved("mixtral").config), encoding="utf-8")


def count_values(tensors: Tensors) -> int:
    return sum(prod(shape) for _, shape in tensors.values())


def row_numbers(out: str, name: str) -> list[str]:
    """The numbers in the row of a component."""
    return next(line for line in out.splitlines() if line.startswith(f"{name} ")).split()[1:]


def test_every_command_notes_unfamiliar_names(run: Runner) -> None:
    write_file(Path("m/model.safetensors"), {f"t{i}": tensor for i, tensor in enumerate(TENSORS.values())})
    for command in ("verify", "why"):
        done = run(command, "./m")
        assert done.code == 0
        assert done.out.count(f"unfamiliar names: matched {len(TENSORS)} tensors by shape alone") == 1


def test_problems_are_named_and_counted_in_every_format(run: Runner) -> None:
    """Without a tensor, with a misshapen and an unexpected one."""
    lost, odd = "lm_head.weight", "model.norm.weight"
    shape, norm = TENSORS[lost][1], TENSORS[odd][1]
    tensors = {name: tensor for name, tensor in TENSORS.items() if name != lost}
    tensors |= {odd: (TENSORS[odd][0], (7,)), "strange": ("F32", (2, 3))}
    write_file(Path("m/model.safetensors"), tensors)
    done = run("verify", "./m")
    assert done.code == 1
    assert done.out.startswith(f"m in m: {len(TENSORS)} tensors   3 problems\n")
    assert f"missing: {lost} {[*shape]} (lm_head)\n" in done.out
    assert f"wrong shape: {odd} [7], expected {[*norm]} (norm)\n" in done.out
    assert "unexpected: strange [2, 3]\n" in done.out
    assert row_numbers(done.out, "lm_head") == [f"{prod(shape):,}", "0", f"−{prod(shape):,}"]
    assert row_numbers(done.out, "unexpected") == ["0", "6", "+6"]
    assert row_numbers(done.out, "total")[:2] == [f"{TOTAL:,}", f"{count_values(tensors):,}"]
    found = json.loads(run("verify", "./m", "--json").out)
    assert (found["ok"], found["shapes_checked"], found["only_names"]) == (False, True, False)
    assert sum(found["expected"].values()) == TOTAL and sum(found["found"].values()) + 6 == count_values(tensors)
    assert [(line["finding"], line["pattern"]) for line in found["lines"] if not line["ok"]] == [
        ("missing", lost), ("wrong shape", odd), ("unexpected", "strange"),
    ]  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(run("verify", "./m", "--csv").out)))
    assert [row["what"] for row in rows if row["finding"] == "component"] == list(COMPONENTS)
    assert [row["finding"] for row in rows if row["finding"] != "component"] == ["missing", "wrong shape", "unexpected"]


def test_the_first_of_many_findings_are_printed_and_where_to_find_the_rest(run: Runner) -> None:
    write_file(Path("m/model.safetensors"), TENSORS | {f"strange.a{'b' * i}": ("F32", (1,)) for i in range(30)})
    done = run("verify", "./m")
    assert done.out.startswith(f"m in m: {len(TENSORS) + 30} tensors   30 problems\n")
    assert done.out.count("\nunexpected: ") == 20 and "\n… and 10 more; use --json to list all\n" in done.out
    assert len([line for line in json.loads(run("verify", "./m", "--json").out)["lines"] if not line["ok"]]) == 30


def test_names_in_an_index_alone_are_compared_with_a_note(run: Runner) -> None:
    write_index(Path("m/model.safetensors.index.json"), assign_shards(TENSORS, 3), total_bytes(TENSORS))
    done = run("verify", "./m")
    assert done.code == 0
    headline, headings, *_ = done.out.splitlines()
    assert headline.endswith("   complete: every tensor name matches")
    assert headings.split() == ["component", "expected", "found", "by", "name", "difference"]
    assert "\nshapes not checked: an index contains only names\n" in done.out
    found = json.loads(run("verify", "./m", "--json").out)
    assert (found["ok"], found["shapes_checked"], found["only_names"]) == (True, False, True)


def test_tensors_in_a_missing_shard_are_not_found(run: Runner) -> None:
    write_shards(Path("m"), TENSORS)
    Path("m/model-00002-of-00003.safetensors").unlink()
    there = {
        name: tensor
        for name, tensor in TENSORS.items()
        if assign_shards(TENSORS, 3)[name] != "model-00002-of-00003.safetensors"
    }
    done = run("verify", "./m")
    assert done.code == 1
    assert row_numbers(done.out, "total")[:2] == [f"{TOTAL:,}", f"{count_values(there):,}"]
    assert (
        f"model-00002-of-00003.safetensors is missing: it should contain {len(TENSORS) - len(there)} tensors"
        in done.out
    )
    assert "\nshapes not checked for tensors in missing files\n" in done.out


def test_a_folder_with_a_pickle_is_not_read_as_a_config(run: Runner, refuse: Refuse) -> None:
    assert run("verify", "./m").code == 0  # there is nothing to compare with
    Path("m/pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    expected = f"m contains no checkpoint: only pytorch_model.bin (paramcount never loads pickles) {ACCEPTED}"
    assert refuse("verify", "./m") == expected
    assert refuse("verify", "mixtral-8x7b", "m") == expected
    Path("m/header.json").write_text(json.dumps(make_header(TENSORS)), encoding="utf-8")
    assert run("verify", "./m", "m/header.json").code == 0


def test_a_checkpoint_without_any_tensor_of_the_model_says_so_before_the_findings(run: Runner) -> None:
    write_file(Path("other.safetensors"), {"unet.weight": ("F32", (2, 3))})
    shown = run("verify", "./m/config.json", "./other.safetensors")
    assert shown.code == 1
    assert "\ncontains no tensor of m\nmissing: " in shown.out
