"""The size of a safetensors file that stores a model's tensors: the header as the library writes it, and the values.

Source: github huggingface/safetensors, safetensors/src/tensor.rs: prepare (order and offsets) and serialize (a length
of eight bytes, and spaces up to a multiple of eight). Before version 0.3.2 tensors were ordered by name alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

import paramcount as pc
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.formats.tensor_entries import BITS
from paramcount.formats.weights import get_format

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


def find_total(model: pc.Count) -> int:
    """The bytes of a model's tensors as they are stored."""
    assert model.stored_bytes is not None, model.notes
    return model.stored_bytes
