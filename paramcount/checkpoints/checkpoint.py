"""A checkpoint as the headers of its files describe it, in any format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from paramcount.formats.files import FileState


class FileTensor(NamedTuple):
    """A tensor as stored in a file. If only an index lists the tensor, everything but the file is None."""

    file: str  # name of its file, as in an index
    dtype: str | None = None  # in the spelling of the format: BF16, F8_E4M3, I32, Q4_K
    shape: tuple[int, ...] | None = None  # outermost axis first, also for GGUF, which writes it last
    size: int | None = None  # bytes of its values
    start: int | None = None  # offset of the first byte in the file


class File(NamedTuple):
    """One file of a checkpoint."""

    name: str  # as in an index and in FileTensor.file
    path: Path
    size: int | None  # bytes; None if the file is missing
    before: int = 0  # bytes without values: the header, and the padding between tensors in GGUF
    state: FileState | None = None  # when its header was read


@dataclass(frozen=True)
class Checkpoint:
    """All files of a checkpoint together."""

    path: Path  # as given by the user
    format: str  # safetensors | gguf | pytorch
    tensors: Mapping[str, FileTensor]
    files: tuple[File, ...]
    faults: tuple[str, ...] = ()  # contradictions between files, or with an index; one line each
    notes: tuple[str, ...] = ()  # harmless, such as which files were read if the path is one of several shards
    total_size: int | None = None  # bytes of all values according to the index
    metadata: Mapping[str, Any] = field(default_factory=dict)  # GGUF only: general.architecture and other scalar values
    # From config.json or quantize_config.json in the same directory.
    quantization_config: Mapping[str, Any] | None = None

    @cached_property
    def has_all_shapes(self) -> bool:
        """Whether every tensor's shape is known."""
        return all(tensor.shape is not None for tensor in self.tensors.values())

    @cached_property
    def has_only_names(self) -> bool:
        """Whether no tensor's shape is known, because an index has names only."""
        return not self.has_all_shapes and all(tensor.shape is None for tensor in self.tensors.values())


class DtypeTotals(NamedTuple):
    """The tensors of one data type."""

    dtype: str
    tensors: int
    elements: int
    bytes: int


def sum_dtypes(checkpoint: Checkpoint) -> tuple[DtypeTotals, ...]:
    """Tensors, elements and bytes of each data type, the most bytes first."""
    sums: dict[str, list[int]] = {}
    for tensor in checkpoint.tensors.values():
        if tensor.dtype is not None and tensor.shape is not None:
            totals = sums.setdefault(tensor.dtype, [0, 0, 0])
            totals[0] += 1
            totals[1] += prod(tensor.shape)
            totals[2] += tensor.size or 0
    rows = [DtypeTotals(dtype, *totals) for dtype, totals in sums.items()]
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.dtype)))
