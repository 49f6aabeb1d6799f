"""Released checkpoints in their real sizes: their headers, written out by hand or from the reference's names, hold what
was published as their total, and the zoo's models with nothing left over.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import paramcount.zoo as zoo
from paramcount.checkpoints.opening.locate import open_checkpoint
from paramcount.checkpoints.verify import Verification, verify_checkpoint
from paramcount.loading import load
from tests.damaging import list_complaints
from tests.headers import Tensors, make_checkpoint, total_bytes, write_header
from tests.released import count_hub_values, make_release
from tests.structures import keep_every

DATA = Path(__file__).parent / "data"
TRUTH = {
    truth["zoo_id"]: truth
    for path in sorted((DATA / "truth").glob("*.json"))
    if (truth := json.loads(path.read_text(encoding="utf-8")))
}
BY_HAND = [
    id for id in TRUTH if TRUTH[id]["config"]["model_type"] != "mllama" and id != "deepseek-r1"
]  # which is DeepSeek-V3 in all sizes
# What a release holds besides its model, as the difference between its total and the model's says.
BESIDE = {
    "gpt2-small": "masks",
    "gpt2-medium": "masks",
    "llama-2-7b": "frequencies",
    "qwen1.5-0.5b": "head",
    "qwen3-1.7b": "head",
}
# What a cause of published_totals.csv is.
KINDS = {
    "e_score_correction_bias": "buffer",
    "multi-token-prediction layer, its own|copies of embedding and head": "MTP layer",
    "scales": "scale",
    "mask buffers|inv_freq": "legacy buffer",
    "copy of the tied head": "tied duplicate",
}
BIG = 20_000  # tensors: those of DeepSeek-V3 with its scales are 91,991


def assert_complete(found: Verification, tensors: Tensors) -> None:
    assert (found.ok, list_complaints(found)) == (True, "")
    assert found.expected == found.found
    assert (found.shapes_checked, found.by_shape) == (True, 0)
    assert found.size.predicted == found.size.found == total_bytes(tensors)


def published_checkpoints(id: str) -> list[int]:
    return [int(claim.value) for claim in zoo.load_entry(id).published if claim.what == "checkpoint" and claim.exact]


def published_extras() -> dict[str, dict[str, int]]:
    """{zoo id: {what a release holds beside its parameters: how many values}}, as tests/data/published_totals.csv
    itemises it.
    """
    found: dict[str, dict[str, int]] = {}
    with (DATA / "published_totals.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            id = {"gpt2": "gpt2-small"}.get(row["model"], row["model"])
            if id in TRUTH and row["what_was_published"] == "safetensors total of the released checkpoint":
                what = next(what for words, what in KINDS.items() if re.search(words, row["cause"]))
                found.setdefault(id, {}).setdefault(what, 0)
                found[id][what] += int(row["units"])
    return found


PUBLISHED_BESIDE = published_extras()


@pytest.mark.parametrize("id", keep_every(6, BY_HAND))
def test_a_released_header_written_by_hand_has_the_model_and_the_published_total(id: str, tmp_path: Path) -> None:
    tensors = make_release(TRUTH[id]["config"], BESIDE.get(id, ""))
    checkpoint = (
        make_checkpoint(tensors)
        if len(tensors) > BIG
        else open_checkpoint(write_header(tmp_path / "header.json", tensors))
    )
    found = verify_checkpoint(load(id), checkpoint)
    assert_complete(found, tensors)
    total, beside = sum(found.expected.values()), sum(n or 0 for n in found.beside.values())
    assert total == TRUTH[id]["total"]
    assert total + beside == count_hub_values(tensors)
    assert {count_hub_values(tensors)} >= set(published_checkpoints(id))
    assert found.beside == PUBLISHED_BESIDE.get(id, found.beside)


def test_many_headers_have_a_published_total_and_some_have_more_than_parameters() -> None:
    assert sum(bool(published_checkpoints(id)) for id in BY_HAND) >= 45
    assert set(PUBLISHED_BESIDE) >= {"deepseek-v3", "gpt2-small", "gpt-oss-20b", "llama-2-7b"}


# ---- the names of the reference
