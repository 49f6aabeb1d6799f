"""Tensor entries and limits shared by all checkpoint formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paramcount.errors import ParamcountError, make_printable, quote

LARGEST_HEADER = 32 << 20  # bytes; a GGUF vocabulary of 262,144 tokens with its merges takes 16 million
MOST_TENSORS = 500_000
LARGEST_NUMBER = 2**63  # the first beyond int64

# Bits per value in safetensors.
BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
    "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip


class TensorEntry(NamedTuple):
    """A tensor in a file's header."""

    dtype: str  # in the notation of the file format
    shape: tuple[int, ...]  # outermost axis first
    start: int  # bytes, relative to the first tensor's values
    stop: int


def check_layout(tensors: Mapping[str, TensorEntry], alignment: int = 1) -> int:
    """The size of all values, which must be contiguous except for padding to `alignment`.

    Units: bytes
    Raises: ParamcountError that names the tensor at a gap or an overlap.
    """
    end, previous = 0, ""
    for name, entry in sorted(tensors.items(), key=lambda item: item[1][2:]):
        start = -(-end // alignment) * alignment
        if entry.start != start:
            expected = f"byte {start:,}"
            if previous and alignment > 1:
                expected += f", the first multiple of {alignment:,} after {quote(previous)}"
            elif previous:
                expected += f", right after {quote(previous)}"
            raise ParamcountError(
                f"its values start at byte {entry.start:,}", where=name_tensor(name), expected=expected
            )
        end, previous = entry.stop, name
    return end


def name_tensor(name: str) -> str:
    """A tensor as the location of an error."""
    return f"tensor {make_printable(name, 100)}"
