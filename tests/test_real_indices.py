"""Indices of released checkpoints, as public repositories hold them: every name is accounted for and total_size
explained, or a documented reason is told.

tests/data/indices.json has what was read of them: total_size, the names of tensors and files, folded, and how many
characters the file has, which holds the folding against the file. Which file a tensor is in was not copied; all names
of files have the same length.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from paramcount.checkpoints.opening.locate import open_checkpoint
from paramcount.checkpoints.verify import Verification, verify_checkpoint
from paramcount.errors import ParamcountError
from paramcount.loading import load
from tests.patterns import expand_pattern, expand_patterns

ENTRIES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "indices.json").read_text(encoding="utf-8")
)
NAMED = {entry["source"].partition("@")[0].partition(":")[0].rpartition("/")[2]: entry for entry in ENTRIES}
REFUSED = [name for name in NAMED if "refused" in NAMED[name]]
AGAINST = [name for name in NAMED if "against" in NAMED[name]]
WHOLE = [name for name in NAMED if name not in REFUSED + AGAINST]
INT4 = "Qwen-VL-Chat-Int4"


def make_index(entry: dict[str, Any]) -> dict[str, Any]:
    names, files = expand_patterns(entry["names"]), expand_pattern(entry["files"])
    assert len(set(names)) == len(names) >= len(files)
    placed = {name: files[i % len(files)] for i, name in enumerate(names)}
    return {"metadata": {**entry.get("metadata", {}), "total_size": entry["total_size"]}, "weight_map": placed}


def verify_index(entry: dict[str, Any], folder: Path, index: dict[str, Any] | None = None) -> Verification:
    path = folder / (
        "pytorch_model.bin.index.json" if entry["files"].endswith(".bin") else "model.safetensors.index.json"
    )
    path.write_text(json.dumps(index or make_index(entry)), encoding="utf-8")
    if "config" in entry:
        (folder / "config.json").write_text(json.dumps(entry["config"]), encoding="utf-8")
    model = entry["config"] | entry.get("checked_as", {}) if "config" in entry else entry["model"]
    return verify_checkpoint(load(model), open_checkpoint(path))


def count_findings(found: Verification) -> dict[str, int]:
    """How many tensors speak against a file, by what is said of them, and how many faults do."""
    lines: Counter[str] = Counter()
    for line in found.lines:
        if not line.finding.ok:
            lines[f"{line.finding.kind} {line.finding.what}"] += line.tensors
    return {**lines, **({"fault": len(found.faults)} if found.faults else {})}


@pytest.mark.parametrize("name", [name for name in NAMED if "characters" in NAMED[name]])
def test_the_names_were_copied_completely(name: str) -> None:
    index = make_index(NAMED[name])
    written = [json.dumps(index, indent=indent) for indent in (2, 4, None)]
    lengths = {len(text) + more for text in written for more in (0, 1)}
    lengths |= {len(text) + text.count("\n") + 2 for text in written}  # lines that end as Windows ends them
    assert NAMED[name]["characters"] in lengths


@pytest.mark.parametrize("name", WHOLE)
def test_every_name_matches_and_the_size_is_explained(name: str, tmp_path: Path) -> None:
    entry = NAMED[name]
    found = verify_index(entry, tmp_path)
    assert (found.ok, count_findings(found), found.by_shape, found.shapes_checked) == (True, {}, 0, False)
    assert found.tensors == len(expand_patterns(entry["names"]))
    assert found.files == len(expand_pattern(entry["files"]))
    assert [remark for remark in found.remarks if remark.startswith(f"total_size {entry['total_size']:,.0f} = ")]


@pytest.mark.parametrize("name", AGAINST)
def test_tensors_that_the_config_does_not_have_are_reported(name: str, tmp_path: Path) -> None:
    found = verify_index(NAMED[name], tmp_path)
    assert count_findings(found) == NAMED[name]["against"]


@pytest.mark.parametrize("name", REFUSED)
def test_an_unsupported_scheme_is_recognised_in_an_index(name: str, tmp_path: Path) -> None:
    with pytest.raises(ParamcountError, match=f"an unsupported quantisation scheme: {NAMED[name]['refused']}"):
        verify_index(NAMED[name], tmp_path)


@pytest.mark.parametrize(
    ("name", "remark"),
    [
        ("llama-65b-hf", "65,285,665,792 values × 2 bytes"),  # 80 × 64 rotary frequencies among them
        ("granite-3.1-1b-a400m-instruct", "1,334,628,352 values × 4 bytes"),
        # 32 masks of 2048 × 2048 truth values, a bit each; 32 × 64 frequencies and 32 fillers of masks as wide as the
        # rest
        ("RedPajama-INCITE-7B-Base", "6,857,304,096 values × 2 bytes + 134,217,728 × 1 bit"),
        # A_log of 18 layers, 16 heads each
        ("Jev-Style-Qwen3.5-2B-Decision-MLX-bf16", "1,881,824,800 values × 2 bytes + 288 × 4 bytes"),
        # 24 × 32 experts of 3 × 2880 × 2880 values, 4 bits each and 8 more for 32 of them
        ("gpt-oss-20b", "packed weights of 10,152,345,600 bytes + 1,804,459,584 values × 2 bytes"),
        ("oasstpythia1.5brm", "5,246,377,988 was not checked: the shapes of 2 tensors are unknown"),
    ],
)
def test_the_contents_of_total_size_are_noted(name: str, remark: str, tmp_path: Path) -> None:
    assert any(remark in said for said in verify_index(NAMED[name], tmp_path).remarks)


@pytest.mark.parametrize("name", WHOLE)
def test_a_wrong_total_size_is_reported(name: str, tmp_path: Path) -> None:
    index = make_index(NAMED[name])
    true = index["metadata"]["total_size"]
    for lie in (1, true - 2, true + 10, 2 * true + 2):
        index["metadata"]["total_size"] = lie
        assert any(fault.startswith("total_size ") for fault in verify_index(NAMED[name], tmp_path, index).faults)


def test_a_total_size_that_is_too_small_is_reported_even_if_some_shapes_are_unknown(tmp_path: Path) -> None:
    index = make_index(NAMED["oasstpythia1.5brm"])
    index["metadata"]["total_size"] = 1_311_592_447
    assert verify_index(NAMED["oasstpythia1.5brm"], tmp_path, index).faults == (
        "total_size 1,311,592,447 is too small for 1,311,592,448 values (expected at least 1 byte per value)",
    )


def test_gptq_takes_the_bytes_in_a_release_s_index(tmp_path: Path) -> None:
    """Of a GPTQ release of 4 bits, without its vision tower, which was not quantised: 48 layers of width 1664 over 14 ×
    14 patches, and a resampler of 256 queries of width 4096. Source of the tower's shapes: huggingface.co
    Qwen/Qwen-VL-Chat-Int4, visual.py.
    """
    index = make_index(NAMED[INT4])
    width, hidden, out, places = 1664, 8192, 4096, 256
    block = 4 * (width * width + width) + 2 * 2 * width + 2 * width * hidden + hidden + width
    around = 3 * 14 * 14 * width + places * width + 2 * width + 2 * out + out * out
    pool = 2 * 256 * out + width * out + 4 * (out * out + out) + 2 * 2 * out
    index["weight_map"] = {name: file for name, file in index["weight_map"].items() if ".visual." not in name}
    index["metadata"]["total_size"] -= 2 * (48 * block + around + pool)
    found = verify_index(NAMED[INT4], tmp_path, index)
    assert (found.ok, found.scheme) == (True, "GPTQ, 4 bits, groups of 128")
    assert any(" = packed weights of " in remark for remark in found.remarks)


def test_an_incomplete_quantisation_config_leaves_the_size_unchecked(tmp_path: Path) -> None:
    index = make_index(NAMED[INT4])
    index["weight_map"] = {name: file for name, file in index["weight_map"].items() if ".visual." not in name}
    config = {key: value for key, value in NAMED[INT4]["config"].items() if key != "quantization_config"}
    found = verify_index(NAMED[INT4] | {"config": config}, tmp_path, index)
    assert (found.ok, found.scheme) == (True, "GPTQ")
    assert any("the packing of GPTQ is unknown" in remark for remark in found.remarks)


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("bloom", "model_00001-of-00072.safetensors"),
        ("gpt-oss-20b", "model-00001-of-00002.safetensors"),  # three files, numbered from 0, "of 2"
        ("llama-7b-hf", "pytorch_model-00007-of-00033.bin"),  # 33, from 0
        ("WizardLM-2-8x22B", "model-00059-of-00059.safetensors"),
    ],
)
def test_a_shard_that_the_index_omits_is_reported(name: str, gone: str, tmp_path: Path) -> None:
    index = make_index(NAMED[name])
    assert gone in index["weight_map"].values()
    index["weight_map"] = {tensor: file for tensor, file in index["weight_map"].items() if file != gone}
    del index["metadata"]["total_size"]
    assert f"{gone} is not in the index" in verify_index(NAMED[name], tmp_path, index).faults
