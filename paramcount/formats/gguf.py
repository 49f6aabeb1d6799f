"""GGUF files: a validated header without the values, read through a small window.

A file consists of the magic word GGUF, the format version, the numbers of tensors and metadata entries, the metadata,
the tensor entries and the values. A metadata entry has a name, a type and a value: a number, a boolean, a string, or an
array of one of them; of an array, this reader keeps only the type and length. A tensor entry has a name, a shape
(innermost axis first), a type and an offset. The first tensor's values and the size of each tensor are padded to a
multiple of the alignment. A big-endian file differs only in its byte order, which its version reveals.

A file may end with its header, as one does that was saved for its metadata and shapes.

This reader accepts little else beyond what the format's own library loads: names must be printable and distinct, arrays
must not contain arrays, and there must be nothing but padding between and after the tensors.

Source: github ggml-org/ggml, docs/gguf.md, and ggml-org/llama.cpp, ggml/src/gguf.cpp, ggml/include/ggml.h,
ggml/src/ggml-common.h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from struct import Struct, calcsize, unpack
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from paramcount.errors import ParamcountError, describe_value, format_shape, locate_errors, make_printable, quote
from paramcount.formats.files import SIGNATURES, FileState, get_file_state, open_regular
from paramcount.formats.tensor_entries import (
    LARGEST_HEADER,
    LARGEST_NUMBER,
    MOST_TENSORS,
    TensorEntry,
    check_layout,
    name_tensor,
)
from paramcount.formats.weights.gguf import BLOCKS, TYPES

WHAT = "a GGUF file"
MOST_METADATA = 65_536  # entries; models have about fifty
MOST_AXES = 4
LONGEST_NAME = 64  # bytes of a tensor's name
LONGEST_KEY = 65_535  # bytes
LONGEST_STRING = 1 << 20  # bytes; a chat template has about ten thousand
WINDOW = 1 << 16  # bytes
ALIGNMENT = "general.alignment"

Scalar: TypeAlias = int | float | bool | str


# Tensor types that the format no longer supports.
REMOVED = {
    4: "Q4_2", 5: "Q4_3", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8",
    36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8",
}  # fmt: skip

# Metadata types by their numbers, and the `struct` formats of scalars.
KINDS = (
    "UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "FLOAT32", "BOOL", "STRING", "ARRAY", "UINT64", "INT64",
    "FLOAT64",
)  # fmt: skip
FORMATS = {
    "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i", "INT64": "q",
    "FLOAT32": "f", "FLOAT64": "d", "BOOL": "B",
}  # fmt: skip


class Array(NamedTuple):
    """A metadata array: its type and length, without elements."""

    type: str  # of the elements
    length: int


class GgufSplit(NamedTuple):
    """The position of a file in a split model."""

    no: int  # from 0
    files: int
    tensors: int  # in all files


class GgufHeader(NamedTuple):
    """The contents of a file's header."""

    path: Path
    tensors: Mapping[str, TensorEntry]  # in the header's order
    metadata: Mapping[str, Scalar]
    arrays: Mapping[str, Array]
    split: GgufSplit | None
    alignment: int
    values_start: int  # the file offset of the values
    state: FileState
    has_values: bool = True  # False if the file ends with its header, as a saved header does


def read_gguf(path: Path) -> GgufHeader:
    """The header of a file, checked against the file's size. No values are read.

    Raises: ParamcountError that names the file and, if possible, the tensor or metadata key.
    """
    with open_regular(path, WHAT) as file, locate_errors(path):
        return _parse_header(path, file)


def compute_values_size(dtype: str, shape: Sequence[int]) -> int:
    """The size of a tensor's values.

    >>> compute_values_size("Q4_K", (128256, 4096))
    295501824

    Units: bytes
    Raises: ParamcountError if a row, along the innermost axis, is not a whole number of blocks.
    """
    values, size, _ = BLOCKS[dtype]
    if prod(n or 1 for n in shape) >= LARGEST_NUMBER:  # the format's library applies its limit even if an axis is 0
        raise ParamcountError(f"= {format_shape(shape)}", where="shape", expected="fewer than 2^63 values")
    row = shape[-1] if shape else 1
    if row % values:
        raise ParamcountError(
            f"= {format_shape(shape)} for {dtype}", where="shape", expected=f"a last axis divisible by {values}"
        )
    return prod(shape) // values * size


class _Reader:
    """Reads the start of a file sequentially, through a window."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file, self.size = file, size
        self.at = 0  # the file offset of the next byte
        self.window, self.window_start = b"", 0
        self.order = "<"

    def take(self, n: int) -> bytes:
        start = self.at - self.window_start
        if start + n > len(self.window):
            self._move_window(n)
            start = 0
        self.at += n
        return self.window[start : start + n]

    def take_numbers(self, form: str) -> tuple[Any, ...]:
        form = self.order + form
        return unpack(form, self.take(calcsize(form)))

    def skip(self, n: int) -> None:
        self.check_room(n)
        self.at += n

    def skip_strings(self, n: int) -> None:
        """Skip n length-prefixed strings without decoding them; a vocabulary has hundreds of thousands."""
        self.check_room(8 * n)
        length = Struct(self.order + "Q").unpack_from
        while n:
            self._move_window(8)
            window, at, last = self.window, 0, len(self.window) - 8
            while n and at <= last:
                at += 8 + length(window, at)[0]
                n -= 1
            self.skip(at)

    def check_room(self, n: int) -> None:
        """Raises: ParamcountError if the next n bytes exceed the limit of a header or the end of the file."""
        end = self.at + n
        if end > LARGEST_HEADER:
            raise ParamcountError(
                f"extends the header to byte {end:,}", expected=f"a header of at most {LARGEST_HEADER:,} bytes"
            )
        if end > self.size:
            raise ParamcountError(
                f"the file ends inside its header, after {self.size:,} bytes", expected="a complete file"
            )

    def _move_window(self, n: int) -> None:
        """Move the window so that it starts with the next n bytes."""
        self.check_room(n)
        self.file.seek(self.at)
        self.window = self.file.read(min(max(n, WINDOW), LARGEST_HEADER - self.at))
        self.window_start = self.at
        if len(self.window) < n:
            raise ParamcountError("became shorter while paramcount was reading it", expected=WHAT)


def _parse_header(path: Path, file: BinaryIO) -> GgufHeader:
    state = get_file_state(file)
    reader = _Reader(file, state.size)
    reader.order = _read_byte_order(reader)
    n_tensors, n_metadata = reader.take_numbers("QQ")
    for n, most, what in ((n_tensors, MOST_TENSORS, "tensors"), (n_metadata, MOST_METADATA, "metadata entries")):
        if n > most:
            raise ParamcountError(f"declares {n:,} {what}", expected=f"at most {most:,}")
    metadata, arrays = _read_metadata(reader, n_metadata)
    alignment = _get_alignment(metadata)
    tensors = _read_tensors(reader, n_tensors)
    end = check_layout(tensors, alignment)
    values_start = _round_up(reader.at, alignment)
    least = values_start + end if end else reader.at
    most = values_start + _round_up(end, alignment)
    is_header = bool(end) and state.size in (reader.at, values_start)
    if not is_header and not least <= state.size <= most:
        raise ParamcountError(
            f"ends at byte {state.size:,}, but its tensors end at byte {least:,}",
            expected=f"the same byte, or padding to a multiple of {alignment:,}",
        )
    split = _parse_split(metadata)
    return GgufHeader(path, tensors, metadata, arrays, split, alignment, values_start, state, not is_header)


def _read_byte_order(reader: _Reader) -> str:
    if not reader.size:
        raise ParamcountError("is empty", expected=WHAT)
    start = reader.take(min(reader.size, 32))
    if not start.startswith(b"GGUF"[: len(start)]):
        kinds = [name for signature, name in SIGNATURES if start.startswith(signature)]
        if start[7:10] == b'\0{"':
            kinds = ["a safetensors file"]
        raise ParamcountError(
            f"is {kinds[0]}" if kinds else f"starts with the bytes {start[:4].hex(' ')}",
            expected=f"{WHAT}, which starts with GGUF",
        )
    reader.at = 0
    number = reader.take(8)[4:]
    versions = {order: unpack(order + "I", number)[0] for order in "<>"}
    for order, version in versions.items():
        if version in (2, 3):
            return order
    raise ParamcountError(f"has GGUF version {min(versions.values()):,}", expected="version 2 or 3")


def _read_metadata(reader: _Reader, n: int) -> tuple[dict[str, Scalar], dict[str, Array]]:
    scalars: dict[str, Scalar] = {}
    arrays: dict[str, Array] = {}
    for i in range(n):
        key = _read_name(reader, f"metadata {i + 1:,}", LONGEST_KEY)
        if key in scalars or key in arrays:
            raise ParamcountError("duplicate key", where=_name_metadata(key))
        try:
            kind = _read_kind(reader)
            if key == ALIGNMENT and kind != "UINT32":
                raise ParamcountError(f"has type {kind}", expected="UINT32")
            value = _read_value(reader, kind)
        except ParamcountError as error:
            raise error.add_location(_name_metadata(key)) from None
        if isinstance(value, Array):
            arrays[key] = value
        else:
            scalars[key] = value
    return scalars, arrays


def _read_value(reader: _Reader, kind: str) -> Scalar | Array:
    if kind == "ARRAY":
        kind = _read_kind(reader)
        if kind == "ARRAY":
            raise ParamcountError("is an array of arrays", expected="an array of numbers, booleans or strings")
        (length,) = reader.take_numbers("Q")
        if kind == "STRING":
            reader.skip_strings(length)
        else:
            reader.skip(length * calcsize("<" + FORMATS[kind]))
        return Array(kind, length)
    if kind == "STRING":
        return _read_string(reader, LONGEST_STRING)
    value: int | float = reader.take_numbers(FORMATS[kind])[0]
    if kind != "BOOL":
        return value
    if value > 1:
        raise ParamcountError(f"= {value}", expected="a boolean: 0 or 1")
    return bool(value)


def _read_kind(reader: _Reader) -> str:
    (number,) = reader.take_numbers("I")
    if number >= len(KINDS):
        raise ParamcountError(f"has unknown type {number:,}", expected=f"a type from 0 to {len(KINDS) - 1}")
    return KINDS[number]


def _read_string(reader: _Reader, most: int) -> str:
    (length,) = reader.take_numbers("Q")
    if length > most:
        raise ParamcountError(f"has {length:,} bytes", expected=f"a string of at most {most:,}")
    data = reader.take(length)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParamcountError(f"is not valid UTF-8 at byte {error.start:,}", expected="a UTF-8 string") from None


def _read_name(reader: _Reader, place: str, most: int) -> str:
    with locate_errors(f"{place}: name"):
        name = _read_string(reader, most)
    if not name or not name.isprintable():
        raise ParamcountError(f"= {quote(name)}", where=f"{place}: name", expected="printable characters")
    return name


def _get_alignment(metadata: Mapping[str, Scalar]) -> int:
    alignment = metadata.get(ALIGNMENT, 32)
    if not isinstance(alignment, int) or not alignment or alignment & (alignment - 1):
        raise ParamcountError(
            f"= {describe_value(alignment)}", where=_name_metadata(ALIGNMENT), expected="a power of 2"
        )
    return alignment


def _round_up(n: int, alignment: int) -> int:
    return -(-n // alignment) * alignment


def _read_tensors(reader: _Reader, n: int) -> dict[str, TensorEntry]:
    tensors: dict[str, TensorEntry] = {}
    for i in range(n):
        name = _read_name(reader, f"tensor {i + 1:,}", LONGEST_NAME)
        if name in tensors:
            raise ParamcountError("duplicate name", where=name_tensor(name))
        try:
            tensors[name] = _read_tensor(reader)
        except ParamcountError as error:
            raise error.add_location(name_tensor(name)) from None
    return tensors


def _read_tensor(reader: _Reader) -> TensorEntry:
    (axes,) = reader.take_numbers("I")
    if axes > MOST_AXES:
        raise ParamcountError(f"has {axes:,} axes", expected=f"at most {MOST_AXES}")
    *sizes, kind, start = reader.take_numbers(f"{axes}QIQ")
    if kind in REMOVED:
        raise ParamcountError(f"has type {kind} ({REMOVED[kind]}), which GGUF no longer supports")
    if kind not in TYPES:
        raise ParamcountError(f"has unknown type {kind:,}", expected=f"a type from 0 to {max(TYPES)}")
    shape = tuple(reversed(sizes))
    return TensorEntry(TYPES[kind], shape, start, start + compute_values_size(TYPES[kind], shape))


def _parse_split(metadata: Mapping[str, Scalar]) -> GgufSplit | None:
    """The file's position in a split model; None for merged files, whose count is 0."""
    if "split.count" not in metadata:
        return None
    files = _get_integer(metadata, "split.count", LARGEST_NUMBER)
    if not files:
        return None
    no = _get_integer(metadata, "split.no", files)
    return GgufSplit(no, files, _get_integer(metadata, "split.tensors.count", LARGEST_NUMBER))


def _get_integer(metadata: Mapping[str, Scalar], key: str, limit: int) -> int:
    """A metadata value, which must be a non-negative integer below the limit."""
    value = metadata.get(key)
    if type(value) is not int or not 0 <= value < limit:
        problem = "is missing" if value is None else f"= {describe_value(value)}"
        expected = "a non-negative integer" if limit == LARGEST_NUMBER else f"an integer from 0 to {limit - 1:,}"
        raise ParamcountError(problem, where=_name_metadata(key), expected=expected)
    return value


def _name_metadata(key: str) -> str:
    return f"metadata {make_printable(key, 100)}"
