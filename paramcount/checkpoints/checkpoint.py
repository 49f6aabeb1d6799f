"""A checkpoint as the headers of its files describe it, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from paramcount.formats.files import FileState


class FileTensor(NamedTuple):
    """A tensor as a file holds it. Of a tensor that only an index names, the name alone is known."""

    file: str  # the name of its file, as an index writes it
    dtype: str | None = None  # as its format writes it: BF16, F8_E4M3, I32, Q4_K
    shape: tuple[int, ...] | None = None  # outermost axis first, also of GGUF, which writes it last
    size: int | None = None  # bytes of its values
    start: int | None = None  # the byte of its file where they begin


class File(NamedTuple):
    """One file of a checkpoint."""

    name: str  # as an index writes it, and Held.file
    path: Path
    size: int | None  # bytes; None where it is not there
    before: int = 0  # bytes that are no tensor's values: the header, and in GGUF what fills up between tensors
    state: FileState | None = None  # when its header was read


@dataclass(frozen=True)
class Checkpoint:
    """All files of a checkpoint together."""

    path: Path  # as it was named
    format: str  # safetensors | gguf | pytorch
    tensors: Mapping[str, FileTensor]
    files: tuple[File, ...]
    faults: tuple[str, ...] = ()  # how the files contradict each other or an index, a line each
    remarks: tuple[str, ...] = ()  # what is no fault and must be said: which files were taken, where one was named
    total_size: int | None = None  # bytes of all values, as an index says
    metadata: Mapping[str, Any] = field(default_factory=dict)  # of GGUF: general.architecture and other single values
    quantization_config: Mapping[str, Any] | None = None  # as config.json or quantize_config.json beside it says

    @cached_property
    def has_all_shapes(self) -> bool:
        """Whether every tensor's shape is known."""
        return all(held.shape is not None for held in self.tensors.values())

    @cached_property
    def has_only_names(self) -> bool:
        """Whether no tensor's shape is known: an index says no more than names."""
        return not self.has_all_shapes and all(held.shape is None for held in self.tensors.values())


class Type(NamedTuple):
    """What is stored in one type of values."""

    dtype: str
    tensors: int
    elements: int
    bytes: int


def sum_dtypes(checkpoint: Checkpoint) -> tuple[Type, ...]:
    """What is stored in each type, the most bytes first."""
    found: dict[str, list[int]] = {}
    for held in checkpoint.tensors.values():
        if held.dtype is not None and held.shape is not None:
            sums = found.setdefault(held.dtype, [0, 0, 0])
            sums[0] += 1
            sums[1] += prod(held.shape)
            sums[2] += held.size or 0
    return tuple(sorted((Type(dtype, *sums) for dtype, sums in found.items()), key=lambda type: (-type.bytes, type.dtype)))
