"""GGUF files: a validated header without the values, read through a small window.

A file is the word GGUF, the format's version, how many tensors and how many metadata it has, the metadata (each a name, a type and a value:
a number, a truth value, a text, or an array of one of them), for each tensor its name, its shape with the innermost axis first, its type and
where its values begin; then the values, each tensor's and the first's filled up to a multiple of the alignment. Of an array, as of the words
of a vocabulary, only the length is kept. Read is what the format's own library loads, and little more: names are printable, none stands twice,
an array holds no arrays, and between and behind the tensors is nothing but what fills them up. A file of a big-endian machine is read too: it
differs in the order of bytes alone, and says so by its version.

Source: github ggml-org/ggml, docs/gguf.md, and ggml-org/llama.cpp, ggml/src/gguf.cpp, ggml/include/ggml.h, ggml/src/ggml-common.h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from struct import Struct, calcsize, unpack
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from paramcount.errors import ParamcountError, describe_value, format_shape, make_printable, quote
from paramcount.formats.files import KNOWN, FileState, get_file_state, open_regular
from paramcount.formats.tensor_entries import (
    LARGEST_HEADER,
    LARGEST_NUMBER,
    MOST_TENSORS,
    TensorEntry,
    check_layout,
    name_tensor,
)

WHAT = "a GGUF file"
MOST_METADATA = 65_536  # models have about fifty
MOST_AXES = 4
LONGEST_NAME = 64  # bytes of a tensor's name
LONGEST_KEY = 65_535  # bytes
LONGEST_TEXT = 1 << 20  # bytes; a chat template has some ten thousand
WINDOW = 1 << 16  # bytes
ALIGNMENT = "general.alignment"

Single: TypeAlias = int | float | bool | str


class Block(NamedTuple):
    """A quantisation block."""

    values: int
    size: int  # bytes
    number: int  # that files have for the type


# Of every type of tensor. What is packed is packed along the innermost axis.
BLOCKS = {
    "F32": Block(1, 4, 0), "F16": Block(1, 2, 1), "BF16": Block(1, 2, 30), "F64": Block(1, 8, 28),
    "I8": Block(1, 1, 24), "I16": Block(1, 2, 25), "I32": Block(1, 4, 26), "I64": Block(1, 8, 27),
    "Q4_0": Block(32, 18, 2), "Q4_1": Block(32, 20, 3), "Q5_0": Block(32, 22, 6), "Q5_1": Block(32, 24, 7),
    "Q8_0": Block(32, 34, 8), "Q8_1": Block(32, 36, 9),
    "Q2_K": Block(256, 84, 10), "Q3_K": Block(256, 110, 11), "Q4_K": Block(256, 144, 12), "Q5_K": Block(256, 176, 13),
    "Q6_K": Block(256, 210, 14), "Q8_K": Block(256, 292, 15),
    "IQ1_S": Block(256, 50, 19), "IQ1_M": Block(256, 56, 29), "IQ2_XXS": Block(256, 66, 16), "IQ2_XS": Block(256, 74, 17), "IQ2_S": Block(256, 82, 22),
    "IQ3_XXS": Block(256, 98, 18), "IQ3_S": Block(256, 110, 21), "IQ4_NL": Block(32, 18, 20), "IQ4_XS": Block(256, 136, 23),
    "TQ1_0": Block(256, 54, 34), "TQ2_0": Block(256, 66, 35), "MXFP4": Block(32, 17, 39),
    "NVFP4": Block(64, 36, 40), "Q1_0": Block(128, 18, 41), "Q2_0": Block(64, 18, 42),
}  # fmt: skip
TYPES = {block.number: name for name, block in BLOCKS.items()}

# What the format had and has no more.
REMOVED = {
    4: "Q4_2", 5: "Q4_3", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8", 36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8",
}  # fmt: skip

# Types of metadata, by their numbers, and how single ones are unpacked.
KINDS = (
    "UINT8",
    "INT8",
    "UINT16",
    "INT16",
    "UINT32",
    "INT32",
    "FLOAT32",
    "BOOL",
    "STRING",
    "ARRAY",
    "UINT64",
    "INT64",
    "FLOAT64",
)
FORMATS = {
    "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i", "INT64": "q",
    "FLOAT32": "f", "FLOAT64": "d", "BOOL": "B",
}  # fmt: skip


class Array(NamedTuple):
    """A metadata array: its type and length, without elements."""

    type: str  # of the elements
    length: int


class Split(NamedTuple):
    """The position of a file in a split model."""

    no: int  # from 0
    files: int
    tensors: int  # of all of them


class GgufHeader(NamedTuple):
    """The contents of a file's header."""

    path: Path
    tensors: Mapping[str, TensorEntry]  # in the header's order
    metadata: Mapping[str, Single]  # those of a single value
    arrays: Mapping[str, Array]
    split: Split | None
    alignment: int
    begins: int  # the byte of the file where the values begin
    state: FileState


def read_gguf(path: Path) -> GgufHeader:
    """The header of a file, checked against the file's size. No values are read.

    Raises: ParamcountError that names the file and, if possible, the tensor or metadata key.
    """
    with open_regular(path, WHAT) as file:
        try:
            return _header(path, file)
        except ParamcountError as error:
            raise error.add_location(make_printable(path)) from None


def values_size(dtype: str, shape: Sequence[int]) -> int:
    """Bytes of a tensor's values.

    >>> values_size("Q4_K", (128256, 4096))
    295501824

    Units: bytes
    Raises: ParamcountError where a row, the innermost axis, is no whole number of blocks.
    """
    values, size, _ = BLOCKS[dtype]
    if prod(n or 1 for n in shape) >= LARGEST_NUMBER:  # the limit of the format's library, but also if an axis is 0
        raise ParamcountError(f"= {format_shape(shape)}", where="shape", expected="fewer than 2^63 values")
    row = shape[-1] if shape else 1
    if row % values:
        raise ParamcountError(
            f"= {format_shape(shape)} of {dtype}",
            where="shape",
            expected=f"rows, the last number, of a multiple of {values} values",
        )
    return prod(shape) // values * size


class _Front:
    """Sequential reader of the start of a file, through a window."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file, self.size = file, size
        self.at = 0  # the byte of the file that comes next
        self.window, self.begins = b"", 0
        self.order = "<"

    def take(self, n: int) -> bytes:
        """The next n bytes."""
        start = self.at - self.begins
        if start + n > len(self.window):
            self._move(n)
            start = 0
        self.at += n
        return self.window[start : start + n]

    def numbers(self, form: str) -> tuple[Any, ...]:
        """The next numbers, in a `struct` format."""
        form = self.order + form
        return unpack(form, self.take(calcsize(form)))

    def skip(self, n: int) -> None:
        self.reach(n)
        self.at += n

    def skip_texts(self, n: int) -> None:
        """Skip n length-prefixed strings without decoding them; a vocabulary has hundreds of thousands."""
        self.reach(8 * n)
        length = Struct(self.order + "Q").unpack_from
        while n:
            self._move(8)
            window, at, last = self.window, 0, len(self.window) - 8
            while n and at <= last:
                at += 8 + length(window, at)[0]
                n -= 1
            self.skip(at)

    def reach(self, n: int) -> None:
        if self.at + n > LARGEST_HEADER:
            raise ParamcountError(
                f"takes the header to byte {self.at + n:,}", expected=f"a header of at most {LARGEST_HEADER:,} bytes"
            )
        if self.at + n > self.size:
            raise ParamcountError(
                f"the file ends after {self.size:,} bytes, within its header", expected="a whole file"
            )

    def _move(self, n: int) -> None:
        """Move the window to the next n bytes."""
        self.reach(n)
        self.file.seek(self.at)
        self.window, self.begins = self.file.read(min(max(n, WINDOW), LARGEST_HEADER - self.at)), self.at
        if len(self.window) < n:
            raise ParamcountError("became shorter while it was read", expected=WHAT)


def _header(path: Path, file: BinaryIO) -> GgufHeader:
    state = get_file_state(file)
    size = state.size
    front = _Front(file, size)
    front.order = _order(front)
    n_tensors, n_metadata = front.numbers("QQ")
    for n, most, what in ((n_tensors, MOST_TENSORS, "tensors"), (n_metadata, MOST_METADATA, "metadata")):
        if n > most:
            raise ParamcountError(f"says that it has {n:,} {what}", expected=f"at most {most:,}")
    metadata, arrays = _metadata(front, n_metadata)
    alignment = _alignment(metadata)
    tensors = _tensors(front, n_tensors)
    end = check_layout(tensors, alignment)
    begins = _filled(front.at, alignment)
    least = begins + end if end else front.at
    if not least <= size <= begins + _filled(end, alignment):
        held = f"its tensors end at byte {least:,}, the file at byte {size:,}"
        raise ParamcountError(held, expected=f"there, or filled up to a multiple of {alignment:,}")
    return GgufHeader(path, tensors, metadata, arrays, _split(metadata), alignment, begins, state)


def _order(front: _Front) -> str:
    """The byte order of a file, from its first eight bytes."""
    if not front.size:
        raise ParamcountError("is empty", expected=WHAT)
    start = front.take(min(front.size, 32))
    if not start.startswith(b"GGUF"[: len(start)]):
        known = [name for begin, name in KNOWN if start.startswith(begin)]
        if start[7:10] == b'\0{"':
            known = ["a safetensors file"]
        raise ParamcountError(
            f"is {known[0]}" if known else f"begins with the bytes {start[:4].hex(' ')}",
            expected=f"{WHAT}, which begins with GGUF",
        )
    front.at = 0
    number = front.take(8)[4:]
    versions = {order: unpack(order + "I", number)[0] for order in "<>"}
    for order, version in versions.items():
        if version in (2, 3):
            return order
    raise ParamcountError(f"is of version {min(versions.values()):,} of GGUF", expected="version 2 or 3")


def _metadata(front: _Front, n: int) -> tuple[dict[str, Single], dict[str, Array]]:
    single: dict[str, Single] = {}
    arrays: dict[str, Array] = {}
    for i in range(n):
        key = _name(front, f"metadata {i + 1:,}", LONGEST_KEY)
        if key in single or key in arrays:
            raise ParamcountError("stands a second time", where=_of_metadata(key), expected="every name once")
        try:
            kind = _kind(front)
            if key == ALIGNMENT and kind != "UINT32":
                raise ParamcountError(f"is of type {kind}", expected="UINT32")
            value = _value(front, kind)
        except ParamcountError as error:
            raise error.add_location(_of_metadata(key)) from None
        if isinstance(value, Array):
            arrays[key] = value
        else:
            single[key] = value
    return single, arrays


def _value(front: _Front, kind: str) -> Single | Array:
    if kind == "ARRAY":
        kind = _kind(front)
        if kind == "ARRAY":
            raise ParamcountError("is an array of arrays", expected="an array of numbers, truth values or texts")
        (length,) = front.numbers("Q")
        if kind == "STRING":
            front.skip_texts(length)
        else:
            front.skip(length * calcsize("<" + FORMATS[kind]))
        return Array(kind, length)
    if kind == "STRING":
        return _text(front, LONGEST_TEXT)
    value: int | float = front.numbers(FORMATS[kind])[0]
    if kind != "BOOL":
        return value
    if value > 1:
        raise ParamcountError(f"= {value}", expected="0 or 1, a truth value")
    return bool(value)


def _kind(front: _Front) -> str:
    (number,) = front.numbers("I")
    if number >= len(KINDS):
        raise ParamcountError(
            f"is of type {number:,}", expected=", ".join(f"{i} {kind}" for i, kind in enumerate(KINDS))
        )
    return KINDS[number]


def _text(front: _Front, most: int) -> str:
    (length,) = front.numbers("Q")
    if length > most:
        raise ParamcountError(f"has {length:,} bytes", expected=f"a string of at most {most:,}")
    data = front.take(length)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParamcountError(f"is not text at byte {error.start:,}", expected="UTF-8") from None


def _name(front: _Front, place: str, most: int) -> str:
    try:
        name = _text(front, most)
    except ParamcountError as error:
        raise error.add_location(f"{place}: its name") from None
    if not name or not name.isprintable():
        raise ParamcountError(f"its name = {quote(name)}", where=place, expected="printable characters")
    return name


def _alignment(metadata: Mapping[str, Single]) -> int:
    found = metadata.get(ALIGNMENT, 32)
    if not isinstance(found, int) or not found or found & (found - 1):
        raise ParamcountError(f"= {describe_value(found)}", where=f"metadata {ALIGNMENT}", expected="a power of 2")
    return found


def _filled(n: int, alignment: int) -> int:
    """The next multiple of the alignment."""
    return -(-n // alignment) * alignment


def _tensors(front: _Front, n: int) -> dict[str, TensorEntry]:
    found: dict[str, TensorEntry] = {}
    for i in range(n):
        name = _name(front, f"tensor {i + 1:,}", LONGEST_NAME)
        if name in found:
            raise ParamcountError("stands a second time", where=name_tensor(name), expected="every name once")
        try:
            found[name] = _tensor(front)
        except ParamcountError as error:
            raise error.add_location(name_tensor(name)) from None
    return found


def _tensor(front: _Front) -> TensorEntry:
    (axes,) = front.numbers("I")
    if axes > MOST_AXES:
        raise ParamcountError(f"has {axes:,} axes", expected=f"at most {MOST_AXES}")
    *sizes, kind, start = front.numbers(f"{axes}QIQ")
    if kind not in TYPES:
        removed = f", {REMOVED[kind]}, which GGUF has no more" if kind in REMOVED else ""
        raise ParamcountError(
            f"is of type {kind:,}{removed}", expected=", ".join(f"{i} {name}" for i, name in sorted(TYPES.items()))
        )
    shape = tuple(reversed(sizes))
    return TensorEntry(TYPES[kind], shape, start, start + values_size(TYPES[kind], shape))


def _split(metadata: Mapping[str, Single]) -> Split | None:
    """The file's position in a split model; None for merged files, which have a count of 0."""
    files = _whole(metadata, "split.count", LARGEST_NUMBER) if "split.count" in metadata else 0
    return (
        Split(_whole(metadata, "split.no", files), files, _whole(metadata, "split.tensors.count", LARGEST_NUMBER))
        if files
        else None
    )


def _whole(metadata: Mapping[str, Single], key: str, below: int) -> int:
    found = metadata.get(key)
    if type(found) is not int or not 0 <= found < below:
        problem = "is missing" if found is None else f"= {describe_value(found)}"
        expected = "a non-negative integer" if below == LARGEST_NUMBER else f"an integer from 0 to {below - 1:,}"
        raise ParamcountError(problem, where=f"metadata {key}", expected=expected)
    return found


def _of_metadata(key: str) -> str:
    return f"metadata {make_printable(key, 100)}"
