"""Sizes of released quantised checkpoints: the config predicts `total_size` of the index, or the file, to a byte.

The size of a safetensors file, its header as the library writes it, and the values: github huggingface/safetensors,
safetensors/src/tensor.rs, prepare (order and offsets) and serialize (a length of eight bytes, and spaces up to a
multiple of eight). Before version 0.3.2 tensors were ordered by name alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pytest
import yaml

import paramcount as pc
from paramcount.counting.quantisation.storage import StoredTensor, find_plan, is_stored, list_stored
from paramcount.formats.tensor_entries import BITS
from paramcount.formats.weights import get_format
from paramcount.zoo import find_path

TYPES = ("U8", "I8", "F8_E4M3", "I16", "F16", "BF16", "I32", "F32", "I64")  # as the library orders them
# {layout: {piece: ending of its name}}. Sources: AutoGPTQ, AutoAWQ and compressed-tensors, as in test_quantised.py
ENDINGS = {
    "plain": {"values": "weight"},
    "gptq": {"packed weights": "qweight", "scale": "scales", "zero point": "qzeros", "group index": "g_idx"},
    "awq": {"packed weights": "qweight", "scale": "scales", "zero point": "qzeros"},
    "int4": {
        "packed weights": "weight_packed",
        "scale": "weight_scale",
        "zero point": "weight_zero_point",
        "description": "weight_shape",
    },
}
Entries = dict[str, tuple[str, tuple[int, ...]]]  # {name: (type, shape)}


def list_entries(rows: Iterable[StoredTensor]) -> Entries:
    """The tensors of a file, one row's copies in the first of its layers."""
    entries: Entries = {}
    for row in rows:
        for name in list_names(row):
            if row.packing.layout == "plain":
                entries[name] = (row.packing.dtype, row.tensor.shape)
                continue
            module, layout = name.removesuffix(".weight"), row.packing.layout
            for piece in get_format(layout).list_pieces(row.tensor.shape, row.packing):
                entries[f"{module}.{ENDINGS[layout][piece.what]}"] = (piece.dtype, piece.shape)
    return entries


def list_names(row: StoredTensor) -> Iterator[str]:
    axes = [[(repeat.axis, i) for i in repeat.indices] for repeat in row.tensor.repeats]
    names = [row.tensor.name.format(**dict(chosen)) for chosen in product(*axes)]  # one name without axes
    assert len(names) == row.copies, "a tensor whose layers are stored differently"
    return iter(names)


def add_leftovers(entries: Entries, file: Mapping[str, Any]) -> Entries:
    """The same with what old versions of AutoGPTQ saved besides: zero biases, and the rotary frequencies."""
    more: Entries = {}
    for name, (_, shape) in entries.items():
        if file.get("biases") and name.endswith(".scales"):
            more[name.replace("scales", "bias")] = ("F16", shape[1:])
        if (n := file.get("inverse_frequencies")) and name.endswith("q_proj.scales"):
            more[name.replace("q_proj.scales", "rotary_emb.inv_freq")] = ("F32", (n,))
    return entries | more


def measure_file(entries: Entries, metadata: Mapping[str, str] | None, order: str) -> int:
    """Bytes of the file."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    stop = 0

    def find_place(name: str) -> tuple[int, str]:
        return (-TYPES.index(entries[name][0]) if order == "dtype" else 0, name)

    for name in sorted(entries, key=find_place):
        dtype, shape = entries[name]
        start, stop = stop, stop + prod(shape) * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, stop]}
    length = len(json.dumps(header, separators=(",", ":")))
    return 8 + length + -length % 8 + stop


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
    assert (count.stored_bytes or 0) + besides - missing == release["bytes"]


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
