"""Tensor entries and limits shared by all checkpoint formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paramcount.errors import ParamcountError, make_printable, quote

LARGEST_HEADER = 32 << 20  # bytes; of a GGUF vocabulary of 262,144 tokens with its merges 16 million
MOST_TENSORS = 500_000
LARGEST_NUMBER = 2**63  # where int64 ends


class TensorEntry(NamedTuple):
    """A tensor in a file's header."""

    dtype: str  # in the notation of the file format
    shape: tuple[int, ...]  # outermost axis first
    start: int  # bytes behind where the values begin
    stop: int


def check_layout(tensors: Mapping[str, TensorEntry], alignment: int = 1) -> int:
    """Total bytes of the values, which must be contiguous except for padding to `alignment`.

    Units: bytes
    Raises: ParamcountError that names the tensor at a gap or an overlap.
    """
    end, before = 0, ""
    for name, stored in sorted(tensors.items(), key=lambda item: item[1][2:]):
        begins = -(-end // alignment) * alignment
        if stored.start != begins:
            behind = f"behind {quote(before)}" if before else "at first"
            multiple = f"a multiple of {alignment:,}, " if alignment > 1 else ""
            expected = f"byte {begins:,}, {behind}: {multiple}no gap, nothing twice"
            raise ParamcountError(
                f"its values begin at byte {stored.start:,}", where=name_tensor(name), expected=expected
            )
        end, before = stored.stop, name
    return end


def name_tensor(name: str) -> str:
    """The location of an error about a tensor."""
    return f"tensor {make_printable(name, 100)}"
