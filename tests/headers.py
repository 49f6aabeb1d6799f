"""Headers of safetensors files in tests: those of tiny models in tests/data/headers, and files of any header, whose
values are holes.

`python -m tests.oracle.checkpoints` writes tests/data/headers: what the reference implementation saves, each with its
config.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from paramcount.checkpoints.checkpoint import Checkpoint, File, FileTensor
from paramcount.formats.tensor_entries import BITS

HEADERS = Path(__file__).parent / "data" / "headers"
NAMES = sorted(path.stem for path in HEADERS.glob("*.json"))
PACKED = [name for name in NAMES if name.endswith(("GPTQ", "AWQ", "FP4")) or "-FP8" in name]
PLAIN = [name for name in NAMES if name not in PACKED]
Tensors: TypeAlias = dict[str, tuple[str, tuple[int, ...]]]  # {name: (type, shape)}


Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = dict[str, Shape]


class SavedModel(NamedTuple):
    """The header of a tiny model as it was saved, with its config.json."""

    source: str
    config: dict[str, Any]
    tensors: Tensors


@cache
def load_saved(name: str) -> SavedModel:
    found = json.loads((HEADERS / f"{name}.json").read_text(encoding="utf-8"))
    return SavedModel(found["source"], found["config"], parse_header(found["header"]))


def parse_header(header: Mapping[str, Any]) -> Tensors:
    return {name: (entry["dtype"], tuple(entry["shape"])) for name, entry in header.items() if name != "__metadata__"}


def read_shapes(text: str) -> Shapes:
    """The tensors of a text such as "q.weight 8 8, k.weight 4 8"."""
    return {name: tuple(map(int, shape)) for name, *shape in (tensor.split() for tensor in text.split(","))}


def make_header(tensors: Tensors) -> dict[str, Any]:
    """A header with these tensors, in order without gaps."""
    found, start = {}, 0
    for name, (dtype, shape) in tensors.items():
        stop = start + tensor_bytes(dtype, shape)
        found[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, stop]}
        start = stop
    return found


def tensor_bytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor's values."""
    return prod(shape) * BITS[dtype] // 8


def make_checkpoint(
    tensors: Tensors, path: Path = Path("model.safetensors"), format: str = "safetensors", **fields: Any
) -> Checkpoint:
    """A checkpoint with these tensors, as if its header had been read."""
    known = {name: FileTensor(path.name, *tensor, tensor_bytes(*tensor), 0) for name, tensor in tensors.items()}
    return Checkpoint(path, format, known, (File(path.name, path, None),), **fields)


def total_bytes(tensors: Tensors) -> int:
    return sum(tensor_bytes(*tensor) for tensor in tensors.values())


def write_header(path: Path, tensors: Tensors) -> Path:
    """A saved header."""
    path.write_text(json.dumps(make_header(tensors)), encoding="utf-8")
    return path


def write_file(path: Path, tensors: Tensors) -> Path:
    """A safetensors file whose values take no room on a disk."""
    text = json.dumps(make_header(tensors)).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + total_bytes(tensors))
    return path


def write_shards(folder: Path, tensors: Tensors, shards: int = 3) -> Path:
    """The index of a sharded model, and its files."""
    placed = assign_shards(tensors, shards)
    files: dict[str, Tensors] = {}
    for name, tensor in tensors.items():
        files.setdefault(placed[name], {})[name] = tensor
    for file, held in files.items():
        write_file(folder / file, held)
    return write_index(folder / "model.safetensors.index.json", placed, total_bytes(tensors))


def assign_shards(tensors: Tensors, shards: int) -> dict[str, str]:
    """{tensor: file}, in order and with about equal numbers of tensors."""
    return {
        name: f"model-{1 + i * shards // len(tensors):05}-of-{shards:05}.safetensors" for i, name in enumerate(tensors)
    }


def write_index(path: Path, placed: Mapping[str, str], total_size: int) -> Path:
    path.write_text(json.dumps({"metadata": {"total_size": total_size}, "weight_map": dict(placed)}), encoding="utf-8")
    return path
