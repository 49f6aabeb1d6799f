"""llama.cpp's quantisation mixes: the type of every tensor, against llama.cpp's own snapshots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.checkpoints.writers.gguf_names import find_layout, list_gguf_tensors
from paramcount.costs.dtypes import MIXES
from paramcount.costs.gguf_mixes import choose_types, find_facts, is_quantised, list_layers

DATA = Path(__file__).parent / "data"
SNAPSHOTS = json.loads((DATA / "gguf_mixes.json").read_text(encoding="utf-8"))["models"]


def load_count(name: str) -> pc.Count:
    path = DATA / "config_truth" / f"{name}.json"
    if path.exists():
        return pc.count(json.loads(path.read_text(encoding="utf-8"))["config"])
    # The file of the snapshot has an LM head of its own.
    return pc.count(name, set={"tie_word_embeddings": False} if name == "qwen3-0.6b" else None)


def list_layer_numbers(text: str) -> list[int]:
    """ "0-2,5" to [0, 1, 2, 5]; "" to [-1], outside of any layer."""
    if not text:
        return [-1]
    ranges = [part.split("-") for part in text.split(",")]
    return [n for first, *last in ranges for n in range(int(first), int(last[0] if last else first) + 1)]


def find_snapshot_type(snapshot: dict[str, Any], mix: str, name: str, layer: int) -> str:
    for type, layers in snapshot.get(name, {}).items():
        if layer in list_layer_numbers(layers):
            return str(type)
    return MIXES[mix]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", SNAPSHOTS)
def test_every_tensor_has_the_type_that_llama_quantize_chooses(model: str) -> None:
    count = load_count(model)
    layout = find_layout(count.architecture, None)
    tensors = [
        tensor
        for tensor in list_gguf_tensors(count.tensors, (), layout, count)
        if tensor.part != "mtp" and not tensor.tied_to
    ]
    differences, compared = [], 0
    for mix in MIXES:
        snapshot = SNAPSHOTS[model][mix]
        facts = find_facts(count, tensors, mix, layout, imatrix=False)
        layers = sorted(
            (layer, tensor.name.replace("{layer}", str(layer))) for tensor in tensors for layer in list_layers(tensor)
        )
        for (layer, _), (tensor, type) in zip(layers, choose_types(tensors, facts), strict=True):
            if is_quantised(tensor.name, tensor):
                compared += 1
                expected = find_snapshot_type(snapshot, mix, tensor.name, layer)
                if type != expected:
                    differences.append((mix, layer, tensor.name, type, expected))
    assert differences == []
    assert compared > 29 * 150


@pytest.mark.parametrize(
    ("model", "mix", "gib"),
    [
        # llama.cpp's logs, "model size = … GiB": github ggml-org/llama.cpp, examples/quantize/README.md and issues
        ("llama-2-7b", "q4_0", "3.56"),
        ("llama-2-7b", "q4_k_m", "3.80"),
        ("llama-2-7b", "q6_k", "5.15"),
        ("llama-3.1-8b", "q4_k_m", "4.58"),
    ],
)
def test_sizes_are_those_of_published_files(model: str, mix: str, gib: str) -> None:
    assert f"{pc.memory(model, dtype=mix).weights_bytes / 2**30:.2f}" == gib
