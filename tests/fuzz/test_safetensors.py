"""Safetensors files with pieces of their headers exchanged: refused in one line, or read as the format's own library
reads them.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from paramcount.errors import ParamcountError
from paramcount.formats import safetensors as safetensors_files
from paramcount.formats.safetensors import NUMPY, map_bits, parse_tensors, read_header
from tests.fuzz.frame import EXAMPLES, fuzz, spoil_text
from tests.refusing import read_or_none
from tests.test_safetensors_files import WRONG, file, header_entry, make_file, read_with_library

pytestmark = pytest.mark.fuzz
__all__ = ["file"]

SCRAPS = (
    "", " ", "{", "}", "[", "]", ",", ":", '"', "\\", "\0", "\x1b", "\xff", "\xed\xa0\x80", "0", "1", "-1", "4", "24",
    "1.0", "1e3", "01", "true", "null", "NaN", "9223372036854775807", "2305843009213693951", "18446744073709551615",
    "18446744073709551616", '"F32"', '"BF16"', '"F4"', '"U8"', '"x"', '"shape"', '"dtype"', '"data_offsets"',
    '"__metadata__"', "[0,0]", "[[]]", "{}", '{"a":"b"}', '"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},',
    "\\u0061", "\\ud800", "a" * 5000,
)  # fmt: skip
VALID = [
    make_file(
        {
            "a": header_entry(0, 24, shape=[2, 3]),
            "b": header_entry(24, 26, "BF16"),
            "c": header_entry(26, 26, "I8", [0, 7]),
            "d": header_entry(26, 34, "I64", []),
        },
        bytes(range(34)),
    ),
    make_file(
        {
            "__metadata__": {"format": "pt", "k": "{\u00e9}"},
            "h.0.ln_1.weight": header_entry(4, 8),
            "wte": header_entry(0, 4),
        },
        bytes(8),
    ),
    make_file('{"x" : {"shape":[ 3 ,2],"data_offsets":[0, 6],"dtype":"U8"} }  ', b"abcdef"),
    make_file({str(i): header_entry(4 * i, 4 * i + 4) for i in range(9)}, bytes(36)),
]


def spoil_file(rng: random.Random) -> bytes:
    """A valid file with pieces of its header exchanged, cut, doubled or moved.

    Mostly with a length and values that fit again.
    """
    whole = rng.choice(VALID)
    length = int.from_bytes(whole[:8], "little")
    text, data = whole[8 : 8 + length].decode("latin-1"), whole[8 + length :]
    header = spoil_text(rng, [text], SCRAPS).encode("latin-1")
    length = rng.choice((len(header),) * 12 + (length, rng.getrandbits(64), len(header) + 8, 2**63))
    data = rng.choice((data,) * 8 + (data[:-1], data + b"\0", b""))
    whole = length.to_bytes(8, "little") + header + data
    return whole if rng.random() < 0.9 else whole[: rng.randint(0, len(whole))]


def describe_header(data: bytes) -> object:
    """What a header says, or how it is refused."""
    try:
        return parse_tensors(data[8:].decode("utf-8", "replace"))
    except ParamcountError as error:
        return str(error)


@pytest.mark.parametrize("i", range(3))
def test_headers_as_writers_write_them_are_read_at_once_and_alike(i: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(i)  # noqa: S311  the same inputs every time
    datas = [*VALID, *(make_file(header) for header, _, _ in WRONG), *(spoil_file(rng) for _ in range(EXAMPLES))]
    at_once = [describe_header(data[: 8 + int.from_bytes(data[:8], "little")]) for data in datas]
    monkeypatch.setattr(safetensors_files, "_match_compact_entry", lambda *_: None)
    assert at_once == [describe_header(data[: 8 + int.from_bytes(data[:8], "little")]) for data in datas]


def compare_readers(data: bytes, file: Path) -> str:
    """Whether a file was read or refused.

    What is read, the library reads alike; any exception but our own goes through.
    """
    file.write_bytes(data)
    header = read_or_none(read_header, file)
    if header is None:
        return "refused"
    found = {
        name: (t.dtype, t.shape, data[header.values_start + t.start : header.values_start + t.stop])
        for name, t in header.tensors.items()
    }
    assert found == read_with_library(data), data
    for name, (dtype, _, stored) in found.items():
        if dtype in NUMPY:
            assert map_bits(header, name).tobytes() == stored
    return "read"


def test_corrupted_files_are_rejected_or_read_as_the_library_reads_them(file: Path) -> None:
    assert fuzz(spoil_file, lambda data: compare_readers(data, file), valid=VALID) == {"refused", "read"}
