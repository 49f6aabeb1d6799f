"""GGUF files: those of the format's own package are read as it reads them, and whatever is wrong with one is one
line.
"""

from __future__ import annotations

import os
import struct
import tracemalloc
from collections.abc import Callable, Sequence
from math import inf, nan
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from paramcount.formats import gguf as gguf_files
from paramcount.formats.gguf import KINDS, REMOVED, Array, read_gguf
from paramcount.formats.tensor_entries import LARGEST_HEADER, TensorEntry
from paramcount.formats.weights.gguf import BLOCKS
from tests.gguf_writing import finish_file
from tests.refusing import error_of

UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, INT64, FLOAT64 = range(13)
F32, F16, Q4_0, Q4_K, I8 = 0, 1, 2, 12, 24


def pack_string(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def pack_item(key: str | bytes, kind: int, value: bytes) -> bytes:
    """An entry of the metadata."""
    return pack_string(key) + struct.pack("<I", kind) + value


def pack_array(key: str, kind: int, length: int, elements: bytes = b"") -> bytes:
    """An entry of the metadata that is an array."""
    return pack_item(key, ARRAY, struct.pack("<IQ", kind, length) + elements)


def pack_tensor_info(name: str | bytes, sizes: Sequence[int] = (), kind: int = F32, start: int = 0) -> bytes:
    """What a file says of a tensor. `sizes`: the innermost axis first."""
    return pack_string(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, start)


def make_file(
    metadata: Sequence[bytes] = (), tensors: Sequence[bytes] = (), data: int | bytes = 0, alignment: int = 32
) -> bytes:
    """A file of this header and these values, or as many bytes of them."""
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + b"".join(metadata) + b"".join(tensors)
    return header + bytes(-len(header) % alignment) + (bytes(data) if isinstance(data, int) else data)


def make_start(n_tensors: int, n_metadata: int, rest: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_metadata) + rest


def write_with_package(file: Path, fill: Callable[[Any], None], arch: str = "llama", **options: Any) -> None:
    """A file as the format's own package writes it."""
    writer = gguf.GGUFWriter(file, arch, **options)
    fill(writer)
    finish_file(writer)


def reading_error(path: Path) -> str:
    message = error_of(read_gguf, path)
    assert message.startswith(str(path))
    return message.removeprefix(str(path)).removeprefix(":").removeprefix(" ")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


# ---- what the format's package writes


def read_with_package(
    path: Path,
) -> tuple[dict[str, tuple[str, tuple[int, ...], int, int]], dict[str, object], dict[str, tuple[str, int]]]:
    """What the format's own package finds: tensors with the bytes of the file where their values begin and how many,
    single metadata, arrays.
    """
    reader = gguf.GGUFReader(path)
    single, arrays = {}, {}
    for key, field in reader.fields.items():
        if key.startswith("GGUF."):
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            kind, length = (int(part[0]) for part in field.parts[3:5])
            arrays[key] = (gguf.GGUFValueType(kind).name, length)
        else:
            single[key] = field.contents()
    return (
        {t.name: (t.tensor_type.name, tuple(t.shape.tolist())[::-1], t.data_offset, t.n_bytes) for t in reader.tensors},
        single,
        arrays,
    )


def assert_read_alike(path: Path) -> None:
    header = read_gguf(path)
    tensors, single, arrays = read_with_package(path)
    assert {
        name: (t.dtype, t.shape, header.values_start + t.start, t.stop - t.start) for name, t in header.tensors.items()
    } == tensors
    assert list(header.tensors) == list(tensors)
    assert list(map(repr, header.metadata.items())) == list(map(repr, single.items()))  # nan is nan, 1 is not True
    assert header.arrays == arrays


PLAIN = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
}
TYPES = [kind.name for kind in gguf.GGMLQuantizationType]
# Where the format's library and its Python package differ: a block of Q8_1 is two halves and 32 bytes in
# ggml/src/ggml-common.h (static_assert
# behind block_q8_1), two floats and 32 bytes in gguf/constants.py. Files have no such tensors: it is a type to compute
# with.
LIBRARY = {"Q8_1": (32, 2 + 2 + 32)}
# Younger than the package: ggml/include/ggml.h (GGML_TYPE_Q2_0 = 42), ggml-common.h (QK2_0 64, a half and two bits a
# value).
YOUNGER = {"Q2_0": (64, 2 + 64 // 4, 42)}


def test_every_type_has_the_number_and_block_of_the_reference_package() -> None:
    known = {
        kind.name: (*LIBRARY.get(kind.name, gguf.GGML_QUANT_SIZES[kind]), int(kind))
        for kind in gguf.GGMLQuantizationType
    }
    newer = {name: block for name, block in known.items() if block[2] > 42}  # of a package that came later
    assert {name: tuple(block) for name, block in BLOCKS.items()} | newer == known | YOUNGER
    assert tuple(kind.name for kind in gguf.GGUFValueType) == KINDS


@pytest.mark.parametrize("endian", gguf.GGUFEndian)
@pytest.mark.parametrize("dtype", [name for name in TYPES if name in BLOCKS and name not in LIBRARY])
def test_tensors_of_every_type_match_the_reference_package(dtype: str, endian: Any, file: Path) -> None:
    block = BLOCKS[dtype]

    def fill(writer: Any) -> None:
        writer.add_tensor("before", np.zeros(3, np.int8))
        if dtype in PLAIN:
            writer.add_tensor("x", np.zeros((5, 2, 3), PLAIN[dtype]))
        else:
            writer.add_tensor(
                "x", np.zeros((5, 2, 3 * block.size), np.uint8), raw_dtype=gguf.GGMLQuantizationType[dtype]
            )
        writer.add_tensor("behind", np.zeros((1, 1), np.float32))

    write_with_package(file, fill, endianess=endian)
    assert_read_alike(file)


SINGLE: dict[str, tuple[str, object]] = {
    "UINT8": ("uint8", 255), "INT8": ("int8", -128), "UINT16": ("uint16", 65535), "INT16": ("int16", -32768),
    "UINT32": ("uint32", 2**32 - 1), "INT32": ("int32", -(2**31)),
    "UINT64": ("uint64", 2**64 - 1), "INT64": ("int64", -(2**63)), "FLOAT32": ("float32", 0.5),
    "FLOAT64": ("float64", 1e-300), "BOOL": ("bool", True), "STRING": ("string", "d\u00e9j\u00e0 \U0001f600\n"),
}  # fmt: skip


@pytest.mark.parametrize("endian", gguf.GGUFEndian)
def test_metadata_of_every_type_matches_the_reference_package(endian: Any, file: Path) -> None:
    def fill(writer: Any) -> None:
        for kind, (method, value) in SINGLE.items():
            getattr(writer, f"add_{method}")(f"a.{kind}", value)
            writer.add_key_value(f"b.{kind}", [value, value, value], gguf.GGUFValueType.ARRAY, gguf.GGUFValueType[kind])
        writer.add_bool("no", False)
        writer.add_float32("inf", -inf)
        writer.add_float64("nan", nan)
        writer.add_tensor("x", np.zeros(2, np.float32))

    write_with_package(file, fill, endianess=endian)
    assert_read_alike(file)


@pytest.mark.parametrize("alignment", [8, 32, 64, 4096])
def test_tensors_are_read_at_any_alignment(alignment: int, file: Path) -> None:
    def fill(writer: Any) -> None:
        writer.add_custom_alignment(alignment)
        for i in range(5):
            writer.add_tensor(f"t{i}", np.zeros((i + 1, 3), np.float16))

    write_with_package(file, fill)
    assert_read_alike(file)
    header = read_gguf(file)
    assert (header.alignment, header.values_start % alignment) == (alignment, 0)


def test_an_unsplit_file_has_no_position(file: Path) -> None:
    for items in (
        [],
        [pack_item("split.count", UINT16, b"\0\0")],
        [pack_item("split.count", UINT16, b"\0\0"), pack_item("split.no", UINT16, b"\7\0")],
    ):
        file.write_bytes(make_file(items))
        assert read_gguf(file).split is None


BY_HAND = {
    "version 2": make_file([pack_item("a", UINT8, b"\7")], [pack_tensor_info("x", [4])], 16).replace(b"F\3", b"F\2"),
    "scalars and empty tensors": make_file(
        [],
        [
            pack_tensor_info("scalar"),
            pack_tensor_info("none", [0, 3], F16, 32),
            pack_tensor_info("first", [32, 0], Q4_0, 32),
            pack_tensor_info("x", [1, 1, 2, 1], I8, 32),
        ],
        34,
    ),
    "tensors in any order": make_file(
        [],
        [
            pack_tensor_info("b", [9], F32, 32),
            pack_tensor_info("a", [8]),
            pack_tensor_info("c", [1], F32, 96),
            pack_tensor_info("none", [0], F32, 96),
        ],
        100,
    ),
}


@pytest.mark.parametrize("kind", BY_HAND)
def test_a_file_that_the_package_does_not_write_is_read_as_it_reads_it(kind: str, file: Path) -> None:
    file.write_bytes(BY_HAND[kind])
    assert_read_alike(file)


def test_padding_after_the_last_tensor_is_optional(file: Path) -> None:
    for n in range(20, 33):
        file.write_bytes(make_file([], [pack_tensor_info("x", [5])], n))
        assert read_gguf(file).tensors == {"x": TensorEntry("F32", (5,), 0, 20)}
    for data, end in ((make_start(0, 0), 24), (make_start(0, 0, bytes(5)), 29), (make_start(0, 0, bytes(8)), 32)):
        file.write_bytes(data)
        header = read_gguf(file)
        assert (header.tensors, header.values_start, header.state.size) == ({}, 32, end)


VOCABULARY = b"".join(pack_string(b"word"[: n % 5] * (n % 4)) for n in range(150_000))


def test_a_vocabulary_is_skipped_without_being_stored(file: Path) -> None:
    names = ("tokens", "scores", "token_type", "merges")
    kinds, sizes = (STRING, FLOAT32, INT32, STRING), (VOCABULARY, bytes(600_000), bytes(600_000), VOCABULARY)
    items = [
        pack_array(f"tokenizer.ggml.{name}", kind, 150_000, elements)
        for name, kind, elements in zip(names, kinds, sizes)
    ]
    file.write_bytes(
        make_file(
            [*items, pack_item("tokenizer.ggml.eos_token_id", UINT32, struct.pack("<I", 2))],
            [pack_tensor_info("x", [8])],
            32,
        )
    )
    tracemalloc.start()
    try:
        header = read_gguf(file)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert header.arrays == {f"tokenizer.ggml.{name}": Array(KINDS[kind], 150_000) for name, kind in zip(names, kinds)}
    assert header.metadata == {"tokenizer.ggml.eos_token_id": 2}
    assert (header.values_start, header.state.size) == (file.stat().st_size - 32, file.stat().st_size)


@pytest.mark.parametrize("window", [1, 7, 8, 9, 24, 100])
def test_the_window_size_does_not_change_the_result(window: int, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = pack_array("words", STRING, 40, b"".join(pack_string(b"w" * n) for n in range(40)))
    tensors = [pack_tensor_info(f"tensor{n}", [8], F32, 32 * n) for n in range(9)]
    file.write_bytes(
        make_file(
            [pack_item("a", STRING, pack_string("b" * 60)), words, pack_item("c", UINT64, bytes(8))], tensors, 288
        )
    )
    expected = read_gguf(file)
    monkeypatch.setattr(gguf_files, "WINDOW", window)
    assert read_gguf(file) == expected
    assert len(expected.tensors) == 9 and expected.arrays == {"words": Array("STRING", 40)}


# ---- what is wrong

FILE = "(expected a GGUF file, which starts with GGUF)"
KIND = "(expected a type from 0 to 12)"
TYPE = "(expected a type from 0 to 42)"
WHOLE = "(expected a complete file)"
LARGE = "(expected a header of at most 33,554,432 bytes)"
PRINTABLE = "(expected printable characters)"
FEWER = "(expected fewer than 2^63 values)"
POWER = "(expected a power of 2)"
TYPED = "(expected UINT32)"
END = "(expected the same byte, or padding to a multiple of 32)"
MOST = 2**64 - 1
X = pack_tensor_info("x", [8])
ALIGNED = "general.alignment"


def pack_u32(value: int) -> bytes:
    return struct.pack("<I", value)


def pack_u64(value: int) -> bytes:
    return struct.pack("<Q", value)


def make_part(no: int | None, files: int, tensors: int | None = 1) -> bytes:
    items = {"split.no": no, "split.count": files, "split.tensors.count": tensors}
    return make_file(
        [pack_item(key, INT32, struct.pack("<i", value)) for key, value in items.items() if value is not None]
    )


def of_item(kind: int, value: bytes, key: str | bytes = "a") -> bytes:
    """A file with one entry of metadata."""
    return make_file([pack_item(key, kind, value)])


def of_array(*args: Any) -> bytes:
    return make_file([pack_array("a", *args)])


def of_tensor(sizes: Sequence[int] = (8,), kind: int = F32, start: int = 0, name: str | bytes = "x") -> bytes:
    return make_file([], [pack_tensor_info(name, sizes, kind, start)], 32)


def aligned(kind: int, value: bytes) -> bytes:
    return make_file([pack_item(ALIGNED, kind, value)], [X], 32)


CUT: list[tuple[bytes, str, int]] = [  # a file that ends inside its header: where, and after how many bytes
    (b"GGU", "", 3),
    (make_start(0, 0)[:23], "", 23),
    (make_start(500_000, 0), "tensor 1: name: ", 24),
    (make_start(0, 65_536), "metadata 1: name: ", 24),
    (make_start(0, 1, pack_item("a", STRING, pack_u64(2**20))), "metadata a: ", 45),
    (make_start(0, 1, pack_item("a", UINT64, bytes(7))), "metadata a: ", 44),
    (make_start(0, 1, pack_array("a", UINT16, 5, bytes(9))), "metadata a: ", 58),
    (make_start(0, 1, pack_array("a", STRING, 2, pack_string("b" * 9) + bytes(7))), "metadata a: ", 73),
    (make_start(0, 1, pack_array("a", STRING, 3, pack_string("b" * 9))), "metadata a: ", 66),
    (make_start(1, 0, pack_tensor_info("x", [8])[:-1]), "tensor x: ", 56),
]
EXTENDING: list[tuple[bytes, int]] = [  # an array beyond the largest header: the byte to which it extends
    (of_array(UINT8, MOST), 18_446_744_073_709_551_664),
    (of_array(STRING, MOST), 147_573_952_589_676_412_969),
    (of_array(STRING, 2, pack_string("b") + pack_u64(2**63)), 9_223_372_036_854_775_874),
]
STARTS: list[tuple[Sequence[int], int, int]] = [  # a second tensor behind one of these sizes: its start, the right one
    ([8], 0, 32),
    ([9], 32, 64),
    ([8], 64, 32),
]
UTF_8 = "(expected a UTF-8 string)"
NESTED = "metadata a is an array of arrays (expected an array of numbers, booleans or strings)"
WRONG: list[tuple[bytes, str]] = [
    *((data, f"{where}the file ends inside its header, after {n} bytes {WHOLE}") for data, where, n in CUT),
    *((data, f"metadata a: extends the header to byte {byte:,} {LARGE}") for data, byte in EXTENDING),
    (b"", "is empty (expected a GGUF file)"),
    (bytes(100_000), f"starts with the bytes 00 00 00 00 {FILE}"),
    (b"gguf" + make_start(0, 0)[4:], f"starts with the bytes 67 67 75 66 {FILE}"),
    (b"\x1b[31m", f"starts with the bytes 1b 5b 33 31 {FILE}"),
    (b"version https://git-lfs.github.com\n", f"is a Git LFS pointer; run `git lfs pull` to fetch the file {FILE}"),
    (struct.pack("<Q", 40) + b'{"x":{"dtype":"F32","shape":[2]', f"is a safetensors file {FILE}"),
    *(
        (make_start(0, 0, version=version), f"has GGUF version {read:,} (expected version 2 or 3)")
        for version, read in ((1, 1), (4, 4), (1 << 24, 1))
    ),
    (make_start(500_001, 0), "declares 500,001 tensors (expected at most 500,000)"),
    (make_start(0, 65_537), "declares 65,537 metadata entries (expected at most 65,536)"),
    # names of metadata
    (of_item(UINT8, b"\0", b""), f"metadata 1: name = '' {PRINTABLE}"),
    (of_item(UINT8, b"\0", "\x1b[31m"), rf"metadata 1: name = '\x1b[31m' {PRINTABLE}"),
    (
        make_file([pack_item("a", UINT8, b"\0"), pack_item("a\u202eb", UINT8, b"\0")]),
        rf"metadata 2: name = 'a\u202eb' {PRINTABLE}",
    ),
    (of_item(UINT8, b"\0", b"a\xff"), f"metadata 1: name is not valid UTF-8 at byte 1 {UTF_8}"),
    *(
        (make_start(0, 1, data), f"metadata 1: name has {n:,} bytes (expected a string of at most 65,535)")
        for data, n in ((pack_u64(MOST), MOST), (pack_u64(65_536) + bytes(70_000), 65_536))
    ),
    (make_file([pack_item("a", UINT8, b"\0"), pack_item("a", UINT8, b"\0")]), "metadata a: duplicate key"),
    (make_file([pack_array("a", UINT8, 0), pack_item("a", UINT8, b"\0")]), "metadata a: duplicate key"),
    # their values
    (of_item(13, b"\0"), f"metadata a has unknown type 13 {KIND}"),
    (of_item(BOOL, b"\2"), "metadata a = 2 (expected a boolean: 0 or 1)"),
    (of_item(STRING, pack_string(b"abc\xed\xa0\x80")), f"metadata a is not valid UTF-8 at byte 3 {UTF_8}"),
    *(
        (of_item(STRING, pack_u64(n)), f"metadata a has {n:,} bytes (expected a string of at most 1,048,576)")
        for n in (MOST, 2**20 + 1)
    ),
    # arrays
    (of_array(13, 1), f"metadata a has unknown type 13 {KIND}"),
    (of_array(ARRAY, 1, pack_u32(ARRAY) + pack_u64(1)), NESTED),
    # the alignment, and parts
    (aligned(UINT32, pack_u32(0)), f"metadata general.alignment = 0 {POWER}"),
    (aligned(UINT32, pack_u32(24)), f"metadata general.alignment = 24 {POWER}"),
    *(
        (aligned(kind, value), f"metadata general.alignment has type {KINDS[kind]} {TYPED}")
        for kind, value in (
            (INT32, b"\xe0\xff\xff\xff"),
            (STRING, pack_string("32")),
            (ARRAY, struct.pack("<IQI", UINT32, 1, 32)),
        )
    ),
    (
        aligned(UINT32, pack_u32(2**31)),
        "ends at byte 128, but its tensors end at byte 2,147,483,680 (expected the same byte, or padding to a "
        "multiple of 2,147,483,648)",
    ),
    (make_part(3, 3), "metadata split.no = 3 (expected an integer from 0 to 2)"),
    (make_part(-1, 3), "metadata split.no = -1 (expected an integer from 0 to 2)"),
    (make_part(None, 3), "metadata split.no is missing (expected an integer from 0 to 2)"),
    (make_part(0, -3), "metadata split.count = -3 (expected a non-negative integer)"),
    (make_part(0, 3, -1), "metadata split.tensors.count = -1 (expected a non-negative integer)"),
    (make_part(0, 3, None), "metadata split.tensors.count is missing (expected a non-negative integer)"),
    (of_item(STRING, pack_string("2"), "split.count"), "metadata split.count = '2' (expected a non-negative integer)"),
    # tensors
    *(
        (of_tensor(name=name), f"tensor 1: name = {shown} {PRINTABLE}")
        for name, shown in (("", "''"), ("\x1b]0;a\x07", r"'\x1b]0;a\x07'"), ("a\nb", r"'a\nb'"), ("a\0", r"'a\x00'"))
    ),
    (
        make_file([], [X, pack_tensor_info(b"\xc3", [8], F32, 32)], 64),
        f"tensor 2: name is not valid UTF-8 at byte 0 {UTF_8}",
    ),
    (of_tensor(name="a" * 65), "tensor 1: name has 65 bytes (expected a string of at most 64)"),
    (make_file([], [X, pack_tensor_info("x", [8], F32, 32)], 64), "tensor x: duplicate name"),
    (of_tensor([1] * 5), "tensor x has 5 axes (expected at most 4)"),
    *(
        (of_tensor([32], kind), f"tensor x has type {kind} ({name}), which GGUF no longer supports")
        for kind, name in REMOVED.items()
    ),
    (of_tensor([32], 43), f"tensor x has unknown type 43 {TYPE}"),
    *(
        (of_tensor(sizes, kind), f"tensor x: shape = {sizes[::-1]} for {name} (expected a last axis divisible by {n})")
        for sizes, kind, name, n in (
            ([128, 4], Q4_K, "Q4_K", 256),
            ([], Q4_0, "Q4_0", 32),
        )
    ),
    *((of_tensor(sizes), f"tensor x: shape = {sizes[::-1]} {FEWER}") for sizes in ([2**62, 2], [0, MOST])),
    # where their values are
    *(
        (of_tensor([8], F32, start), f"tensor x: its values start at byte {start:,} (expected byte 0)")
        for start in (16, 32, MOST)
    ),
    *(
        (
            make_file([], [pack_tensor_info("x", before), pack_tensor_info("y", [8], F32, start)], 96),
            f"tensor y: its values start at byte {start:,} (expected byte {right}, the first multiple of 32 after 'x')",
        )
        for before, start, right in STARTS
    ),
    *(
        (
            make_file([], [pack_tensor_info("x", [size])], n),
            f"ends at byte {end}, but its tensors end at byte {right:,} {END}",
        )
        for size, n, end, right in (
            (8, 31, 95, 96),
            (5, 33, 97, 84),
            (2**60, 32, 96, 2**62 + 64),
        )
    ),
    (make_file([pack_item("a", UINT8, b"\0")], [], 1), f"ends at byte 65, but its tensors end at byte 38 {END}"),
]


@pytest.mark.parametrize(
    ("data", "message"), WRONG, ids=[f"{i}: {message[:60]}" for i, (_, message) in enumerate(WRONG)]
)
def test_an_invalid_file_is_a_one_line_error(data: bytes, message: str, file: Path) -> None:
    file.write_bytes(data)
    assert reading_error(file) == message


def test_a_file_truncated_or_extended_by_a_byte_is_rejected(file: Path) -> None:
    words = pack_array("words", STRING, 2, pack_string("ab") + pack_string(""))
    whole = make_file(
        [pack_item("a", UINT16, b"\1\0"), words, pack_item("b", STRING, pack_string("c"))],
        [pack_tensor_info("x", [8]), pack_tensor_info("y", [32, 2], Q4_0, 32)],
        32 + 36 + 28,
    )
    file.write_bytes(whole)
    assert list(read_gguf(file).tensors) == ["x", "y"]
    headers = (182, 192)  # a header alone, with the padding behind it or without
    for n in range(len(whole) - 28):
        file.write_bytes(whole[:n])
        if n in headers:
            assert not read_gguf(file).has_values
        else:
            assert reading_error(file)
    file.write_bytes(whole + b"\0")
    assert reading_error(file) == f"ends at byte {len(whole) + 1}, but its tensors end at byte {len(whole) - 28} {END}"


def test_the_limit_of_header_bytes_is_exact(file: Path) -> None:
    for n, kind, elements in ((2**25 - 49, UINT8, b""), (1, STRING, pack_u64(2**25 - 57))):
        file.write_bytes(make_start(0, 1, pack_array("a", kind, n, elements)))
        os.truncate(file, LARGEST_HEADER)
        assert read_gguf(file).values_start == LARGEST_HEADER
        file.write_bytes(make_start(1, 1, pack_array("a", kind, n, elements)))
        os.truncate(file, 1 << 40)
        assert reading_error(file) == f"tensor 1: name: extends the header to byte 33,554,440 {LARGE}"
    with file.open("r+b") as opened:
        opened.write(make_start(1, 1, pack_array("a", UINT8, 2**25 - 49 - 32)))
        opened.seek(LARGEST_HEADER - 32)
        opened.write(pack_tensor_info("x", [8]))
    assert reading_error(file) == f"tensor x: extends the header to byte 33,554,433 {LARGE}"


HOSTILE = {
    "empty texts": make_start(0, 1, pack_array("a", STRING, 1 << 16, bytes(8 << 16))),
    "arrays in arrays": make_start(
        0, 1, pack_array("a", ARRAY, 1 << 16, (pack_u32(ARRAY) + pack_u64(1 << 16)) * (1 << 16))
    ),
    "a text": make_start(0, 1, pack_item("a", STRING, pack_string("\U0001f600" + "a" * ((1 << 20) - 4)))),
    "a long text": make_start(0, 1, pack_item("a", STRING, pack_string("a" * (1 << 21)))),
    "long names": make_start(0, 32, b"".join(pack_item(f"{n:065535}", UINT8, b"\0") for n in range(8))),
    "zeros": make_start(1000, 1000, bytes(1 << 19)),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_header_takes_little_more_memory_than_its_length(kind: str, file: Path) -> None:
    file.write_bytes(HOSTILE[kind] + b"\0" * 100)
    tracemalloc.start()
    try:
        assert reading_error(file)
        assert tracemalloc.get_traced_memory()[1] < (8 if kind == "a text" else 2) << 20
    finally:
        tracemalloc.stop()


def test_a_file_that_shrinks_during_reading_is_rejected(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(make_start(0, 1, pack_string("a")))
    longer = os.stat_result([*file.stat()[:6], 1000, *file.stat()[7:]])
    monkeypatch.setattr(os, "fstat", lambda _: longer)
    assert reading_error(file) == "metadata a became shorter while paramcount was reading it (expected a GGUF file)"
