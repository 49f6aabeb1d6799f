"""Safetensors files: those of the format's own library are read as it reads them, and whatever is wrong with one is one
line.
"""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from safetensors import SafetensorError

from paramcount.errors import ParamcountError
from paramcount.formats import piecewise_json
from paramcount.formats import safetensors as safetensors_files
from paramcount.formats.safetensors import NUMPY, Header, map_bits, read_header, widen_bf16
from paramcount.formats.tensor_entries import BITS, LARGEST_HEADER, TensorEntry
from tests.refusing import error_of

deserialize: Any = safetensors.deserialize
LIBRARY_TYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "I16": np.int16,
    "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8,
}  # fmt: skip


def make_file(header: object, data: bytes = b"") -> bytes:
    """A file of this header, as JSON or as it stands, and these values."""
    text = (
        header
        if isinstance(header, bytes)
        else header.encode()
        if isinstance(header, str)
        else json.dumps(header).encode()
    )
    return struct.pack("<Q", len(text)) + text + data


def header_entry(start: int, stop: int, dtype: str = "F32", shape: object = (1,)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def reading_error(path: Path) -> str:
    message = error_of(read_header, path)
    assert message.startswith(str(path))
    return message.removeprefix(str(path)).removeprefix(":").removeprefix(" ")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def read_array(header: Header, name: str) -> Any:
    return widen_bf16(map_bits(header, name), header.tensors[name].dtype)


# ---- what the format's library writes


def read_with_library(data: bytes) -> dict[str, tuple[str, tuple[int, ...], bytes]] | None:
    """What the library finds; None where it refuses."""
    try:
        return {
            name: (found["dtype"], tuple(found["shape"]), bytes(found["data"])) for name, found in deserialize(data)
        }
    except SafetensorError:
        return None


FILES = {
    "no tensors": make_file({}),
    "numbers": safetensors.numpy.save(
        {name: np.array([[0, 1, 2], [100, 101, 127]], of) for name, of in LIBRARY_TYPES.items()} | {"odd": np.ones(1)}
    ),
    "scalars and empty tensors": safetensors.numpy.save(
        {"scalar": np.array(1.5), "none": np.empty((0, 3), np.float32), "last": np.empty((2, 0))}
    ),
    "unaligned": make_file({"a": header_entry(0, 1, "U8"), "b": header_entry(1, 9, shape=(2,))}, bytes(range(9))),
    "whitespace and keys in any order": make_file(
        '{ "b" :\n{"data_offsets" :[ 4,\t8 ], "shape": [ 1 ],"dtype":"F32" } ,'
        '"\\u0061":{"dtype":"\\u0046\\u0033\\u0032","shape":[],"data_offsets":[0,4]}}\r\n  ',
        bytes(range(8)),
    ),
    "a beginning like a pickle's": make_file('{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'.ljust(640)),
}


@pytest.mark.parametrize("kind", FILES)
def test_tensors_and_values_are_those_that_the_library_reads(kind: str, file: Path) -> None:
    file.write_bytes(FILES[kind])
    header = read_header(file)
    arrays = {name: map_bits(header, name) for name in header.tensors}
    assert {name: (*entry[:2], arrays[name].tobytes()) for name, entry in header.tensors.items()} == read_with_library(
        FILES[kind]
    )
    for name, entry in header.tensors.items():
        assert (arrays[name].shape, arrays[name].dtype) == (entry.shape, np.dtype(LIBRARY_TYPES[entry.dtype]))
        assert not (arrays[name].size and arrays[name].flags.writeable)


def test_bf16_is_the_upper_half_of_a_float32(file: Path) -> None:
    values = np.array(
        [0.0, -0.0, 1.0, -1.5, 2.0**-126, 2.0**-133, 3.3895313892515355e38, np.inf, -np.inf, np.nan], np.float32
    )
    halves = values.view(np.uint32) >> 16
    file.write_bytes(make_file({"x": header_entry(0, 20, "BF16", [10])}, halves.astype("<u2").tobytes()))
    header = read_header(file)
    assert (header.tensors["x"].dtype, map_bits(header, "x").tolist()) == ("BF16", halves.tolist())
    found = read_array(header, "x")
    assert found.dtype == np.float32
    assert found.tobytes() == values.tobytes()


def test_metadata_is_read_as_strings(file: Path) -> None:
    safetensors.numpy.save_file({"a": np.ones(2)}, file, metadata={"format": "np", "a{b": "}\n\u00e9\x1b"})
    assert read_header(file).metadata == {"format": "np", "a{b": "}\n\u00e9\x1b"}


@pytest.mark.parametrize("dtype", BITS)
def test_every_type_has_as_many_bits_as_in_the_library(dtype: str, file: Path) -> None:
    data = make_file({"x": header_entry(0, BITS[dtype], dtype, (8,))}, bytes(BITS[dtype]))
    assert read_with_library(data) == {"x": (dtype, (8,), bytes(BITS[dtype]))}
    file.write_bytes(data)
    assert read_header(file).tensors == {"x": TensorEntry(dtype, (8,), 0, BITS[dtype])}


@pytest.mark.parametrize("dtype", sorted(set(BITS) - set(NUMPY)))
def test_reading_values_of_an_unsupported_dtype_is_an_error(dtype: str, file: Path) -> None:
    file.write_bytes(make_file({"x": header_entry(0, BITS[dtype], dtype, (8,))}, bytes(BITS[dtype])))
    header = read_header(file)
    with pytest.raises(
        ParamcountError,
        match=f"model.safetensors: tensor x: values of dtype {dtype} are not supported "
        r"\(expected F64, F32, F16, BF16, I64, ",
    ):
        read_array(header, "x")


# ---- what is wrong

TENSOR = 'tensor a: invalid entry (expected {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]})'
KEYS = "(expected dtype, shape and data_offsets)"
DTYPES = "(expected F32, F4, F6_E2M3, F6_E3M2, F8_E4M3 or 17 others)"
SHAPE = "(expected a list of at most 32 non-negative integers)"
OFFSETS = "(expected two non-negative integers in ascending order)"
FEWER = "(expected fewer than 2^63 bytes)"
EMPTY = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
ONES = "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,…, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"
SHAPES = {1: 1, "[-1]": [-1], "[1.0]": [1.0], "[true]": [True], f"[0, {2**63}]": [0, 2**63]}
SHAPES |= {ONES: [1] * 33}
WRONG: list[tuple[object, int, str]] = [
    *(({"a": header_entry(0, 4, shape=n)}, 4, f"tensor a: shape = {text} {SHAPE}") for text, n in SHAPES.items()),
    *(
        ({"a": header_entry(0, 0, shape=shape)}, 0, f"tensor a: shape = {shape} of F32 {FEWER}")
        for shape in ([2**62, 2**62], [2**62], [0, 10**17, 10**17], [2**62, 0])
    ),
    *(
        ({"a": header_entry(0, 4) | {"data_offsets": at}}, 4, f"tensor a: data_offsets = {at} {OFFSETS}")
        for at in ([0, 4, 4], [4, 0], [-4, 0], [2**63, 2**63 + 4])
    ),
    *(
        (
            {"a": header_entry(0, 4, dtype, [n])},
            4,
            f"tensor a: data_offsets: spans 4 bytes (expected {size} bytes, the size of {dtype} [{n}])",
        )
        for dtype, n, size in (("F32", 2, 8), ("F16", 1, 2))
    ),
    *(
        (
            {"b": header_entry(start, start + 4), "a": header_entry(0, 4)},
            start + 4,
            f"tensor b: its values start at byte {start} (expected byte 4, right after 'a')",
        )
        for start in (2, 5)
    ),
    ({"a": header_entry(0, 4), "b": header_entry(0, 4)}, 4,
     "tensor b: its values start at byte 0 (expected byte 4, right after 'a')"),
    (f'{{"a":{EMPTY},}}', 0, "header: invalid JSON at character 53 (expected a string in quotes)"),
    (f'{{"a":{EMPTY} "b"', 0, "header: invalid JSON at character 53 (expected ,)"),
    (f'{{"a":{EMPTY},"\\u0061":{EMPTY}}}', 0, "header: duplicate name 'a'"),
    (f'{{"\\ud800":{EMPTY}}}', 0, r"header: '\ud800' contains a lone surrogate (expected valid Unicode)"),
    ("[]", 0, "header: invalid JSON at character 0 (expected {)"),
    (" {}", 0, "header: invalid JSON at character 0 (expected {)"),
    ("{} x", 0, "header: unexpected text at character 3 (expected nothing after the JSON object)"),
    ('{"a"', 0, "header: invalid JSON: unexpected end of file (expected :)"),
    ('{"a":', 0, TENSOR),
    ('{"a ', 0, "header: invalid JSON at character 1 (expected a string in quotes)"),
    ('{"a\n":{}}', 0, "header: invalid JSON at character 3 (expected a string in quotes)"),
    ("{a:1}", 0, "header: invalid JSON at character 1 (expected a string in quotes)"),
    (b'{"\xff":1}', 0, "the header is not UTF-8 at byte 2 (expected JSON in UTF-8)"),
    ('{"a":1}', 0, TENSOR), ('{"a":null}', 0, TENSOR), ('{"a":["F32",[1],[0,4]]}', 4, TENSOR),
    ('{"a":{"dtype":{}}}', 0, TENSOR), ('{"a":{' + " " * 5000 + "}}", 0, TENSOR),
    ('{"a":' + "[" * 100_000, 0, TENSOR),
    ('{"a":{"dtype":' + "[" * 3000 + "}}", 0, "tensor a is nested too deeply (expected at most 100 levels)"),
    ('{"a":{dtype}}', 0,
     "tensor a: line 1 column 2: invalid JSON: expecting property name enclosed in double quotes (expected a JSON "
     "object)"),
    ({"a": {"dtype": "F32", "shape": [1]}}, 4, f"tensor a: data_offsets is missing {KEYS}"),
    ({"a": header_entry(0, 4) | {"Shape": [1]}}, 4,
     "tensor a: unknown key 'Shape' (expected dtype, shape or data_offsets); did you mean shape?"),
    ('{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', 4, "tensor a: duplicate key 'dtype'"),
    ({"a": header_entry(0, 4, "F33")}, 4, f"tensor a: dtype = 'F33' {DTYPES}; did you mean F32?"),
    ({"a": header_entry(0, 4, shape=[10**200])}, 4, "tensor a: a number of 201 digits (expected at most 100)"),
    ({"a": {"dtype": "F32", "shape": [1], "data_offsets": {}}}, 4, TENSOR),
    ({"a": header_entry(0, 1, "F4", [3])}, 1, "tensor a: F4 [3] does not take a whole number of bytes"),
    ({"__metadata__": header_entry(0, 4)}, 4, "header: invalid JSON at character 43 (expected a string in quotes)"),
    ({"a": header_entry(4, 8)}, 8, "tensor a: its values start at byte 4 (expected byte 0)"),
    ({"a": header_entry(0, 4)}, 3, "contains 3 bytes of values (expected 4 bytes, the size of its tensors)"),
    ({"a": header_entry(0, 2**40, shape=[2**38])}, 4,
     "contains 4 bytes of values (expected 1,099,511,627,776 bytes, the size of its tensors)"),
    ('{"__metadata__":{},"__metadata__":{}}', 0, "header: duplicate name '__metadata__'"),
    ('{"__metadata__":{"a":"b","a":"b"}}', 0, "header: duplicate name 'a'"),
    ({"__metadata__": {"a": 1}}, 0, "header: invalid JSON at character 23 (expected a string in quotes)"),
    ({"__metadata__": None}, 0, "header: invalid JSON at character 17 (expected {)"),
    ({"\x1b[31m": header_entry(0, 4)}, 4, r"header: invalid name '\x1b[31m' (expected printable characters)"),
    ({"a\u202eb": header_entry(0, 4)}, 4, r"header: invalid name 'a\u202eb' (expected printable characters)"),
    ('{"__metadata__":{"a":"\\udfff"}}', 0, r"header: '\udfff' contains a lone surrogate (expected valid Unicode)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("header", "n", "message"), WRONG, ids=[f"{i}: {message[:60]}" for i, (*_, message) in enumerate(WRONG)]
)
def test_an_invalid_header_is_a_one_line_error(header: object, n: int, message: str, file: Path) -> None:
    file.write_bytes(make_file(header, bytes(n)))
    assert reading_error(file) == message
    if isinstance(header, dict) and "character" not in message:  # as the library writes it, without spaces
        file.write_bytes(make_file(json.dumps(header, separators=(",", ":")), bytes(n)))
        assert reading_error(file) == message


HEADED = "(expected a safetensors file with a header of at most 33,554,432 bytes)"
BEGINNINGS: list[tuple[bytes, str]] = [
    (b"", "is empty (expected a safetensors file)"),
    (bytes(7), "has fewer than 8 bytes (expected a safetensors file)"),
    (bytes(8), "declares a header of 0 bytes (expected a safetensors file with a JSON object as its header)"),
    (struct.pack("<Q", 1) + b"{",
     "declares a header of 1 bytes (expected a safetensors file with a JSON object as its header)"),
    (struct.pack("<Q", 3) + b"{}", "ends inside its header, after 2 of 3 bytes (expected a complete file)"),
    (struct.pack("<Q", 2**63) + b"{}", f"declares a header of 9,223,372,036,854,775,808 bytes {HEADED}"),
    (struct.pack("<Q", 2**64 - 1) + b"{}", f"declares a header of 18,446,744,073,709,551,615 bytes {HEADED}"),
    (struct.pack("<Q", LARGEST_HEADER + 1) + b"{}", f"declares a header of 33,554,433 bytes {HEADED}"),
    (struct.pack("<Q", LARGEST_HEADER) + b"{}",
     "ends inside its header, after 2 of 33,554,432 bytes (expected a complete file)"),
    (b"GGUF\3\0\0\0\0\0", f"is a GGUF file {HEADED}"),
    (b"PK\3\4\0\0\x08\x08\0\0", f"is a zip archive, probably a PyTorch checkpoint {HEADED}"),
    (b"\x80\x02}q\0(X\1\0", f"is a pickle {HEADED}"),
    (b"version https://git-lfs.github.com/spec/v1\n",
     f"is a Git LFS pointer; run `git lfs pull` to fetch the file {HEADED}"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "message"), BEGINNINGS, ids=[message[:60] for _, message in BEGINNINGS])
def test_a_file_with_an_invalid_beginning_is_rejected(data: bytes, message: str, file: Path) -> None:
    file.write_bytes(data)
    assert reading_error(file) == message


def test_a_file_truncated_or_extended_by_a_byte_is_rejected(file: Path) -> None:
    whole = safetensors.numpy.save(
        {"a": np.ones((2, 3), np.float32), "b": np.array(2, np.int8)}, metadata={"format": "np"}
    )
    for n in range(len(whole)):
        file.write_bytes(whole[:n])
        assert reading_error(file)
    file.write_bytes(whole + b"\0")
    assert reading_error(file) == "contains 26 bytes of values (expected 25 bytes, the size of its tensors)"
    file.write_bytes(whole)
    assert set(read_header(file).tensors) == {"a", "b"}


def test_too_many_entries_are_rejected(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piecewise_json, "MOST_MEMBERS", 3)
    for n, fits in ((3, True), (4, False)):
        for header in (
            {str(i): header_entry(0, 0, shape=[0]) for i in range(n)},
            {"__metadata__": {str(i): "" for i in range(n)}},
        ):
            file.write_bytes(make_file(header))
            if fits:
                assert len(read_header(file).tensors) in (0, n)
            else:
                assert reading_error(file) == "header has too many entries (expected at most 3)"


HOSTILE = {
    "lists": '{"a":' + "[[]," * (1 << 17),
    "lists in a list": '{"a":{"dtype":[' + "[]," * (1 << 17) + "[]]}}",
    "numbers": '{"a":{"dtype":"F32","data_offsets":[0,4],"shape":[' + "1," * (1 << 17) + "1]}}",
    "digits": '{"a":{"dtype":"F32","data_offsets":[0,4],"shape":[' + "1" * (1 << 18) + "]}}",
    "lists as metadata": '{"__metadata__":{"a":[' + "[]," * (1 << 17),
    "a name": '{"' + "a" * (1 << 18),
    "escapes": '{"' + "\\u0061" * (1 << 16),
    "blanks": "{" + " " * (1 << 18),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_header_takes_little_more_memory_than_its_length(kind: str, file: Path) -> None:
    data = make_file(HOSTILE[kind])
    file.write_bytes(data)
    tracemalloc.start()
    try:
        assert reading_error(file)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(data)
    finally:
        tracemalloc.stop()


def test_only_the_header_of_a_terabyte_file_is_read(file: Path) -> None:
    data = make_file({"a": header_entry(0, 1 << 40, shape=[1 << 19, 1 << 19])})
    file.write_bytes(data)
    os.truncate(file, len(data) + (1 << 40))
    header = read_header(file)
    assert header.tensors["a"].shape == (1 << 19, 1 << 19)
    assert read_array(header, "a")[-1, -1] == 0


@pytest.mark.parametrize("how", ["replaced", "written again", "longer"])
def test_a_replaced_file_is_not_read_with_an_old_header(how: str, file: Path) -> None:
    safetensors.numpy.save_file({"a": np.ones(2)}, file)
    header, times = read_header(file), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    if how == "replaced":
        file.rename(file.with_name("old"))
    if how == "longer":
        file.write_bytes(file.read_bytes() + b"\0")
    else:
        safetensors.numpy.save_file({"a": np.zeros(2)}, file.with_name("new"))
        file.write_bytes(file.with_name("new").read_bytes())
    os.utime(
        file, ns=(times[0], times[1] + (how == "written again"))
    )  # else nothing but the size or the file itself is another
    with pytest.raises(ParamcountError, match=r"model\.safetensors changed while paramcount was reading it$"):
        read_array(header, "a")
    file.unlink()
    with pytest.raises(ParamcountError, match=r"model\.safetensors cannot be read: No such file or directory$"):
        read_array(header, "a")


def test_a_file_that_shrinks_during_reading_is_rejected(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(make_file({"a": header_entry(0, 4)}, bytes(4)))
    monkeypatch.setattr(safetensors_files, "_read_length", lambda *_: 1000)
    assert reading_error(file) == "became shorter while paramcount was reading it (expected a safetensors file)"
