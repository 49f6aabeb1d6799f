"""Sizes of released quantised checkpoints: the config predicts `total_size` of the index, or the file, to a byte."""

from __future__ import annotations

import json
import re
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import pytest
import yaml

import paramcount as pc
from paramcount.counting.quantisation.storage import find_plan, is_stored, list_stored
from paramcount.zoo import find_path
from tests.safetensors_sizes import add_leftovers, find_total, list_entries, measure_file

DATA = Path(__file__).parent / "data" / "released_quantised.json"
RELEASES: dict[str, dict[str, Any]] = {
    release["model"]: release for release in json.loads(DATA.read_text(encoding="utf-8"))
}
RANGE = re.compile(r"\{(\d+)-(\d+)\}")
BESIDE = "all but experts"


def expand(names: list[str]) -> list[str]:
    """Names in which {0-3} stands for each of these numbers."""
    found = []
    for name in names:
        match = RANGE.search(name)
        numbers = range(int(match[1]), int(match[2]) + 1) if match else ()
        found += [RANGE.sub(str(i), name) for i in numbers] if match else [name]
    return found


@cache
def load_config(id: str) -> tuple[str, dict[str, Any]]:
    path = find_path(id)
    assert path is not None
    entry = yaml.safe_load(path.read_text(encoding="utf-8"))
    return entry["architecture"], entry["config"]


def list_modules(id: str, ending: str) -> list[str]:
    """The modules of a model whose names end so, each layer's; all linear layers but experts and routers for BESIDE."""
    found = []
    for tensor in pc.count(id).tensors:
        name = tensor.name.removesuffix(".weight")
        is_linear = len(tensor.shape) == 2 and not tensor.component.startswith(("experts", "router"))
        if tensor.part == "decoder" and (is_linear if ending == BESIDE else name.endswith(ending)):
            found += [name.replace("{layer}", str(i)) for i in (tensor.layer.indices if tensor.layer else (0,))]
    return found


def make_document(release: dict[str, Any]) -> Any:
    """The zoo's id, or a config with the quantisation that the release states."""
    if "config" in release:
        config = json.loads(json.dumps(release["config"]))
        block = config["quantization_config"]
        if "ignore" in block:
            block["ignore"] = expand(block["ignore"])
        return config
    if "quantization_config" not in release:
        return release["zoo"]
    block = dict(release["quantization_config"])
    for ending, packing in release.get("otherwise", {}).items():
        block |= dict.fromkeys(list_modules(release["zoo"], ending), packing)
    architecture, sizes = load_config(release["zoo"])
    return {"architecture": architecture, "config": sizes, "quantization_config": block}


@pytest.mark.parametrize("model", [model for model, release in RELEASES.items() if "file" not in release])
def test_the_predicted_bytes_match_the_index(model: str) -> None:
    release = RELEASES[model]
    count = pc.count(make_document(release))
    besides = sum(prod(factors) for factors in release.get("besides", {}).values())
    missing = 2 * sum(count.components[name] for name in release.get("without", ()))  # encoders in BF16
    assert find_total(count) + besides - missing == release["bytes"]


@pytest.mark.parametrize("model", [model for model, release in RELEASES.items() if "file" in release])
def test_the_predicted_bytes_match_the_file_with_its_header(model: str) -> None:
    release = RELEASES[model]
    document = make_document(release)
    loaded = pc.load(document)
    plan = find_plan(None, loaded.storage_keys)
    assert plan is not None
    tensors = [tensor for tensor in pc.count(document).tensors if is_stored(tensor, None)]
    entries = add_leftovers(list_entries(list_stored(loaded.sizes, tensors, plan)), release["file"])
    assert measure_file(entries, release["file"]["metadata"], release["file"]["order"]) == release["bytes"]


def test_a_model_converted_by_mlx_is_as_large_as_the_release() -> None:
    assert pc.memory("qwen3-14b", dtype="mlx-4bit").weights_bytes == RELEASES["Qwen3-14B-MLX-4bit"]["bytes"]


def test_memory_answers_with_the_stored_size() -> None:
    release = RELEASES["mlx-community/Qwen3.6-27B-4bit"]
    memory = pc.memory(make_document(release))
    assert (memory.dtype, memory.weights_bytes) == ("MLX 4-bit (group 64, as stored)", release["bytes"])
