"""Headers of tiny models as the reference saved them: every tensor matches, and every kind of damage is reported."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable
from math import prod
from pathlib import Path

import pytest

from paramcount.checkpoints.opening.locate import open_checkpoint
from paramcount.checkpoints.verify import Verification, verify_checkpoint
from paramcount.loading import load
from tests.damaging import DAMAGES, DamagedCheckpoint, Finding, list_complaints, list_findings, sample_names
from tests.headers import (
    NAMES,
    PACKED,
    PLAIN,
    assign_shards,
    load_saved,
    total_bytes,
    write_header,
    write_index,
    write_shards,
)
from tests.structures import keep_every

# A tensor that alone says that the writer has another name for it: without it, either may be said to be missing.
ONE_NAME = {"embed_out.weight": "lm_head.weight"}
MANY = "EXAMPLES" in os.environ  # every tensor of every header, and not a few of each
Verify = Callable[..., Verification]


def verify_in_folder(name: str, folder: Path, path: Path) -> Verification:
    (folder / "config.json").write_text(json.dumps(load_saved(name).config), encoding="utf-8")
    return verify_checkpoint(load(load_saved(name).config), open_checkpoint(path))


@pytest.fixture
def verify(tmp_path: Path) -> Verify:
    """Verify tensors as a saved header next to the config.json of a frozen header."""
    path = tmp_path / "header.json"
    return lambda name, tensors: verify_in_folder(name, tmp_path, write_header(path, tensors))


def count_other_values(found: Verification) -> int:
    """Values of tensors that are present but are not parameters."""
    return sum(line.values or 0 for line in found.lines if line.finding.ok)


def merge_names(says: Iterable[Finding]) -> set[Finding]:
    return {said._replace(name=ONE_NAME.get(said.name, said.name)) for said in says}


def damage_tensors(name: str, damage: str, few: int) -> Iterable[DamagedCheckpoint]:
    """One kind of damage for each of a few tensors."""
    tensors = load_saved(name).tensors
    chosen = list(tensors) if MANY else sample_names(list(tensors), few)
    return itertools.chain.from_iterable(DAMAGES[damage](tensors, tensor) for tensor in chosen)


OTHER_TENSORS = {"buffer", "scale", "zero point", "group index", "tensor scale", "activation scale"}


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_saves_exactly_the_tensors_of_its_config(name: str, verify: Verify) -> None:
    found = verify(name, load_saved(name).tensors)
    assert (found.ok, list_complaints(found), found.scheme is None) == (True, "", name in PLAIN)
    assert found.expected == found.found
    assert (found.shapes_checked, found.by_shape, found.tensors) == (True, 0, len(load_saved(name).tensors))
    assert found.size.predicted == found.size.found == total_bytes(load_saved(name).tensors)
    assert {line.finding.what for line in found.lines} <= OTHER_TENSORS


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", keep_every(12, PLAIN))
def test_every_kind_of_damage_to_a_tensor_is_reported(name: str, damage: str, verify: Verify) -> None:
    for case in damage_tensors(name, damage, 4):
        found = verify(name, case.tensors)
        assert merge_names(list_findings(found)) == merge_names(case.says)
        assert (found.ok, found.faults) == (False, ())


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", PACKED)
def test_every_kind_of_damage_to_a_packed_tensor_is_reported_with_its_module(
    name: str, damage: str, verify: Verify
) -> None:
    for case in damage_tensors(name, damage, 4):
        found = verify(name, case.tensors)
        assert not found.ok
        assert case.module in list_complaints(found)


@pytest.mark.parametrize(
    ("name", "head", "table"),
    [
        ("llama-tied", "lm_head.weight", "model.embed_tokens.weight"),
        ("gpt2", "lm_head.weight", "transformer.wte.weight"),
    ],
)
def test_a_stored_copy_of_a_tied_embedding_is_not_a_problem(name: str, head: str, table: str, verify: Verify) -> None:
    tensors = load_saved(name).tensors
    found = verify(name, {**tensors, head: tensors[table]})
    assert found.ok
    assert [(line.finding.what, line.pattern, line.values) for line in found.lines] == [
        ("tied duplicate", head, prod(tensors[table][1]))
    ]


# ---- in several files


@pytest.mark.parametrize("name", keep_every(8, NAMES))
def test_a_sharded_checkpoint_is_the_same_by_index_folder_and_any_shard(name: str, tmp_path: Path) -> None:
    index = write_shards(tmp_path, load_saved(name).tensors)
    shards = sorted(tmp_path.glob("*.safetensors"))
    for path in (index, tmp_path, shards[1]):
        found = verify_in_folder(name, tmp_path, path)
        assert (found.ok, list_complaints(found), found.files, found.tensors, found.by_shape) == (
            True,
            "",
            3,
            len(load_saved(name).tensors),
            0,
        )
        assert found.size.predicted == found.size.found == total_bytes(load_saved(name).tensors)
    index.unlink()
    assert verify_in_folder(name, tmp_path, shards[0]).ok


@pytest.mark.parametrize("gone", [0, 1, 2])
@pytest.mark.parametrize("name", keep_every(8, NAMES))
def test_a_missing_file_is_reported(name: str, gone: int, tmp_path: Path) -> None:
    tensors = load_saved(name).tensors
    index = write_shards(tmp_path, tensors)
    shard = sorted(tmp_path.glob("*.safetensors"))[gone]
    shard.unlink()
    lost = [tensor for tensor, file in assign_shards(tensors, 3).items() if file == shard.name]
    found = verify_in_folder(name, tmp_path, index)
    assert not found.ok
    assert any(shard.name in fault and str(len(lost)) in fault for fault in found.faults)
    assert found.size.predicted is None or found.size.predicted <= total_bytes(tensors)
    index.unlink()
    found = verify_in_folder(name, tmp_path, tmp_path)  # nothing but the others' names speaks of it now
    assert not found.ok
    assert any(shard.name in fault for fault in found.faults)
    if name in PLAIN:
        assert sum(line.tensors for line in found.lines if line.finding.kind == "missing") == len(lost)
        assert sum(line.values or 0 for line in found.lines) - count_other_values(found) == sum(
            prod(tensors[tensor][1]) for tensor in lost
        )


# ---- an index alone


@pytest.mark.parametrize("name", PLAIN)
def test_a_wrong_index_without_files_is_reported(name: str, tmp_path: Path) -> None:
    tensors = load_saved(name).tensors
    placed, size = assign_shards(tensors, 3), total_bytes(tensors)
    index = tmp_path / "model.safetensors.index.json"
    gone = sample_names(list(tensors), 3)[1]
    for lie, total, pattern in [
        (placed, size + 4, "total_size"),
        (placed, size - total_bytes({gone: tensors[gone]}), "total_size"),
        ({tensor: file for tensor, file in placed.items() if tensor != gone}, size, gone),
        (placed | {"more.weight": "model-00001-of-00003.safetensors"}, size, "more.weight"),
    ]:
        found = verify_in_folder(name, tmp_path, write_index(index, lie, total))
        assert not found.ok
        assert pattern in list_complaints(found)
