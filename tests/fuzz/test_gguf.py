"""GGUF files with pieces of them exchanged: refused in one line, or read as the format's own package reads them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from paramcount.formats.gguf import read_gguf
from tests.fuzz.frame import fuzz
from tests.refusing import read_or_none
from tests.test_gguf_files import (
    ALIGNED,
    F16,
    F32,
    I8,
    INT32,
    LIBRARY,
    MOST,
    Q4_0,
    Q4_K,
    STRING,
    UINT16,
    UINT32,
    YOUNGER,
    X,
    assert_read_alike,
    file,
    make_file,
    pack_array,
    pack_item,
    pack_string,
    pack_tensor_info,
    pack_u32,
    pack_u64,
)

pytestmark = pytest.mark.fuzz
__all__ = ["file"]

SIZES_OF_KINDS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 8: 8, 10: 8, 11: 8, 12: 8}
VALID = [
    make_file([pack_item(f"s{kind}", kind, bytes(size)) for kind, size in SIZES_OF_KINDS.items()], [X], 32),
    make_file(
        [pack_item("general.architecture", STRING, pack_string("llama")), pack_item(ALIGNED, UINT32, pack_u32(64))],
        [pack_tensor_info("x", [3]), pack_tensor_info("y", [2, 2], F16, 64)],
        72,
        alignment=64,
    ),
    make_file(
        [
            pack_array("t", STRING, 3, pack_string("a") + pack_string("") + pack_string("bc")),
            pack_array("n", INT32, 2, bytes(8)),
        ],
        [pack_tensor_info("blk.0.attn_q.weight", [32, 2], Q4_0), pack_tensor_info("z", [8], I8, 64)],
        72,
    ),
    make_file(
        [],
        [
            pack_tensor_info("a", [256], Q4_K),
            pack_tensor_info("b", [1, 2, 1, 2], F32, 160),
            pack_tensor_info("c", [], F32, 192),
            pack_tensor_info("d", [0], F32, 224),
            pack_tensor_info("e", [4], F32, 224),
        ],
        240,
    ),
    make_file(
        [
            pack_item("split.no", UINT16, b"\1\0"),
            pack_item("split.count", UINT16, b"\2\0"),
            pack_item("split.tensors.count", INT32, pack_u32(3)),
        ],
        [X],
        32,
    ),
]  # fmt: skip
NUMBERS = (
    *range(17), 24, 30, 31, 32, 33, 39, 42, 43, 64, 96, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53,
    2**62, 2**63 - 1, 2**63, MOST - 7, MOST,
)  # fmt: skip


def spoil_file(rng: random.Random) -> bytes:
    """A valid file with pieces of it exchanged, cut, doubled or moved, mostly numbers where numbers are."""
    data = bytearray(rng.choice(VALID))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data)) if rng.random() < 0.8 else rng.choice((4, 8, 16, 24))
        match rng.randint(0, 6):
            case 0:
                del data[at : at + rng.choice((1, 2, 4, 8, 20))]
            case 1:
                data[at:at] = data[at : at + rng.choice((1, 2, 4, 8, 24))]
            case 2:
                data[at] = rng.randrange(256)
            case 3:
                data[at] = (data[at] + rng.choice((1, -1, 32, -32))) % 256
            case 4:
                data[at : at + 4] = pack_u32(rng.choice(NUMBERS) % 2**32)
            case 5:
                data[at : at + 8] = pack_u64(rng.choice(NUMBERS))
            case _:
                data[-1:] = rng.choice((b"", b"\0", bytes(8), bytes(24), bytes(33)))
    return bytes(data) if rng.random() < 0.9 else bytes(data[: rng.randint(0, len(data))])


def compare_readers(data: bytes, file: Path) -> str:
    """Whether a file was read or refused.

    What is read, the package reads alike; any exception but our own goes through.
    """
    file.write_bytes(data)
    header = read_or_none(read_gguf, file)
    if header is None:
        return "refused"
    assert sum(t.stop - t.start for t in header.tensors.values()) <= len(data)
    if not {t.dtype for t in header.tensors.values()} & {*LIBRARY, *YOUNGER}:
        assert_read_alike(file)
    return "read"


def test_corrupted_files_are_rejected_or_read_as_the_package_reads_them(file: Path) -> None:
    assert fuzz(spoil_file, lambda data: compare_readers(data, file), valid=VALID) == {"refused", "read"}
