"""Safetensors files: a validated header (without NumPy) and memory-mapped values (with NumPy).

A file consists of the header's length (8 bytes, little-endian), the header (a JSON object in UTF-8) and the values. The
header has the dtype, shape and data offsets of each tensor, and optional strings under `__metadata__`. This reader is
stricter than the format's own library: names must be printable, and duplicate or unknown keys are errors.

`USUAL` matches a whole entry with one regular expression and falls back to JSON for anything else. Measured on a header of
400,000 tensors (49 MB): 3.8 s and 75 MB with it, 6.1 s and 100 MB without it.

Source: github huggingface/safetensors, README.md, section Format, and safetensors/src/tensor.rs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from paramcount.errors import (
    ParamcountError,
    describe_value,
    find_nearest,
    format_shape,
    make_choice_error,
    make_printable,
    quote,
)
from paramcount.formats.files import KNOWN, FileState, check_unchanged, get_file_state, open_regular
from paramcount.formats.piecewise_json import expect_end, parse_members, parse_string
from paramcount.formats.strict_json import parse_json
from paramcount.formats.tensor_entries import LARGEST_HEADER, LARGEST_NUMBER, TensorEntry, check_layout, name_tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

WHAT = "a safetensors file"
MOST_AXES = 32  # the limit of NumPy 1
LARGEST_ENTRY = 4000  # characters: all axes and both offsets at 20 digits each, with room for whitespace

# Bits per value.
BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip

DTYPES = {dtype: dtype for dtype in BITS}  # so that all tensors of a dtype share one string

# NumPy dtypes; BF16 is read as raw bits.
NUMPY = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1",
}  # fmt: skip

KEYS = ("dtype", "shape", "data_offsets")  # of a tensor's entry
ENTRY = re.compile(rf"\{{[^{{}}]{{0,{LARGEST_ENTRY}}}\}}")
NUMBER = "(?:0|[1-9][0-9]{0,17})"  # below 2^63 as it stands
SHAPE = f"(?:{NUMBER}(?:, ?{NUMBER}){{0,{MOST_AXES - 1}}})?"
USUAL = re.compile(
    rf'"([^"\\\x00-\x1f]*+)": ?\{{"dtype": ?"(\w+)", ?"shape": ?\[({SHAPE})\], ?"data_offsets": ?\[({NUMBER}), ?({NUMBER})\]\}}'
)


class Header(NamedTuple):
    """The contents of a file's header."""

    path: Path
    tensors: Mapping[str, TensorEntry]  # in the header's order
    metadata: Mapping[str, str]
    begins: int  # file offset of the values
    state: FileState


def read_header(path: Path) -> Header:
    """The header of a file, checked against the file's size. No values are read.

    Raises: ParamcountError that names the file and, if possible, the tensor.
    """
    place = make_printable(path)
    with open_regular(path, WHAT) as file:
        state = get_file_state(file)
        size = state.size
        data = file.read(8)
        length = _header_length(data, size, place)
        header = file.read(length)
    try:
        if len(header) < length:
            raise ParamcountError("became shorter while it was read", expected=WHAT)
        text = _text(header)
        del header  # as long as the text is
        tensors, metadata, end = parse_tensors(text)
        if end != size - 8 - length:
            held = f"its tensors end after {end:,} bytes of values, the file after {size - 8 - length:,}"
            raise ParamcountError(held, expected="as many as its tensors take")
    except ParamcountError as error:
        raise error.add_location(place) from None
    return Header(path, tensors, metadata, 8 + length, state)


def _header_length(data: bytes, size: int, place: str) -> int:
    """The header's length in bytes, from the first 8 bytes of a file of `size` bytes."""
    if not size:
        raise ParamcountError("is empty", where=place, expected=WHAT)
    if len(data) < 8:
        raise ParamcountError(
            f"ends after {len(data)} bytes, within the length of its header", where=place, expected=WHAT
        )
    length = int.from_bytes(data, "little")
    if length > LARGEST_HEADER:  # not for smaller lengths: a header of 640 bytes begins like a pickle
        known = [f"is {name}" for start, name in KNOWN if data.startswith(start[:8])]
        held = known[0] if known else f"says that its header has {length:,} bytes"
        raise ParamcountError(held, where=place, expected=f"{WHAT}, its header of at most {LARGEST_HEADER:,} bytes")
    if length < 2:
        raise ParamcountError(
            f"says that its header has {length} bytes", where=place, expected=f"{WHAT}, its header a JSON object"
        )
    if length > size - 8:
        raise ParamcountError(
            f"ends within its header, after {size - 8:,} of {length:,} bytes", where=place, expected="a whole file"
        )
    return length


def _text(header: bytes) -> str:
    try:
        return header.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParamcountError(f"its header is not text at byte {error.start:,}", expected="JSON in UTF-8") from None


def parse_tensors(text: str) -> tuple[dict[str, TensorEntry], dict[str, str], int]:
    """The tensors and metadata in a header's JSON, and the total bytes of values, which must have no gaps.

    Reads one entry at a time, so that a hostile header is rejected before it takes memory.

    >>> parse_tensors('{"wpe.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}')
    ({'wpe.weight': TensorEntry(dtype='F32', shape=(2, 3), start=0, stop=24)}, {}, 24)

    Units: bytes
    Raises: ParamcountError that names the tensor.
    """
    metadata: dict[str, str] = {}
    shapes: dict[str, tuple[int, ...]] = {}

    def entry(name: str, at: int) -> tuple[TensorEntry | None, int]:
        if name != "__metadata__":
            return _tensor(name, text, at)
        found, at = parse_members(text, at, lambda key, at: parse_string(text, at))
        metadata.update(found)
        return None, at

    try:
        found, at = parse_members(text, 0, entry, lambda at: _usual(text, at, shapes))
        expect_end(text, at)
    except ParamcountError as error:
        raise error if error.where else error.add_location("header") from None
    tensors = {name: stored for name, stored in found.items() if stored is not None}
    return tensors, metadata, check_layout(tensors)


def _usual(text: str, at: int, shapes: dict[str, tuple[int, ...]]) -> tuple[str, TensorEntry, int] | None:
    """Name, entry and end of a valid tensor in the layout that the format's library writes; None for anything else.

    `shapes`: cache of parsed shapes by their text, because most repeat.
    """
    usual = USUAL.match(text, at)
    if usual is None:
        return None
    name, dtype, listed, first, last = usual.groups()
    shape = shapes.get(listed)
    if shape is None:
        shape = shapes[listed] = tuple(map(int, listed.split(","))) if listed else ()
    start, stop = int(first), int(last)
    if name == "__metadata__" or dtype not in BITS or prod(shape) * BITS[dtype] != 8 * (stop - start):
        return None
    if 0 in shape and prod(n or 1 for n in shape) >= LARGEST_NUMBER // 8:
        return None
    return name, TensorEntry(DTYPES[dtype], shape, start, stop), usual.end()


def _tensor(name: str, text: str, at: int) -> tuple[TensorEntry, int]:
    """The entry of a tensor at position `at`, and the position after it."""
    entry = ENTRY.match(text, at)
    if entry is None:
        raise ParamcountError(
            "is described by something else",
            where=name_tensor(name),
            expected='{"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}',
        )
    try:
        return _make_entry(parse_json(entry[0])), entry.end()
    except ParamcountError as error:
        raise error.add_location(name_tensor(name)) from None


def _make_entry(fields: Mapping[str, Any]) -> TensorEntry:
    if fields.keys() ^ KEYS:
        for key in (*KEYS, *fields):
            if key not in fields:
                raise ParamcountError("is missing", where=key, expected="dtype, shape and data_offsets")
            if key not in KEYS:
                raise ParamcountError(f"unknown key {quote(key)}", choices=KEYS, nearest=find_nearest(key, KEYS))
    dtype, shape, offsets = (fields[key] for key in KEYS)
    if not isinstance(dtype, str) or dtype not in BITS:
        raise make_choice_error(dtype, BITS, where="dtype")
    if not isinstance(shape, list) or len(shape) > MOST_AXES or not all(map(_is_size, shape)):
        raise ParamcountError(
            f"= {_format_list(shape)}", where="shape", expected=f"a list of at most {MOST_AXES} non-negative integers"
        )
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_size, offsets)) or offsets[0] > offsets[1]:
        raise ParamcountError(
            f"= {_format_list(offsets)}",
            where="data_offsets",
            expected="where its values begin and end, two non-negative integers",
        )
    if prod(n or 1 for n in shape) * BITS[dtype] >= 8 * LARGEST_NUMBER:  # NumPy applies its limit even if an axis is 0
        raise ParamcountError(f"= {_format_list(shape)} of {dtype}", where="shape", expected="fewer than 2^63 bytes")
    start, stop = offsets
    size, rest = divmod(prod(shape) * BITS[dtype], 8)
    if rest or size != stop - start:
        takes = "no whole number of bytes" if rest else f"{size:,} bytes"
        raise ParamcountError(
            f"{dtype} {_format_list(shape)} takes {takes}, its offsets hold {stop - start:,}",
            expected="as many bytes as its values take",
        )
    return TensorEntry(DTYPES[dtype], tuple(shape), start, stop)


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value < LARGEST_NUMBER


def _format_list(value: object) -> str:
    return (
        make_printable(format_shape(map(describe_value, value)), 80)
        if isinstance(value, list)
        else describe_value(value)
    )


def map_bits(header: Header, name: str) -> Array:
    """The stored values of a tensor as a read-only memory map; BF16 as uint16 bits.

    Raises: ParamcountError if NumPy has no such dtype, or if the file changed or cannot be mapped.
    """
    import numpy as np

    stored = header.tensors[name]
    place = f"{make_printable(header.path)}: {name_tensor(name)}"
    if stored.dtype not in NUMPY:
        raise ParamcountError(f"its values are of type {stored.dtype}", where=place, choices=NUMPY)
    with open_regular(header.path, WHAT) as file:
        check_unchanged(header.path, file, header.state)
        if stored.start == stored.stop:
            return np.empty(
                stored.shape, NUMPY[stored.dtype]
            )  # NumPy before 2.2 cannot map an empty range at a page boundary
        return np.memmap(file, NUMPY[stored.dtype], "r", header.begins + stored.start, stored.shape).view(np.ndarray)


def widen_bf16(found: Array, dtype: str) -> Array:
    """The result of `map_bits` as floats: BF16 is the upper half of a float32.

    >>> import numpy as np
    >>> widen_bf16(np.array([0x3F80, 0xC040], dtype="<u2"), "BF16").tolist()
    [1.0, -3.0]
    """
    if dtype != "BF16":
        return found
    wide: Array = found.astype("<u4")
    wide <<= 16
    return wide.view("<f4")


def read_array(header: Header, name: str) -> Array:
    """The values of a tensor as an array of its stored shape; only BF16 is copied."""
    return widen_bf16(map_bits(header, name), header.tensors[name].dtype)
