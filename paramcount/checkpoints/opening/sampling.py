"""Whether two tensors hold the same values, told by a few pieces of them."""

from __future__ import annotations

from typing import BinaryIO

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.formats.files import check_unchanged, open_regular

PIECES = 64
PIECE = 4096  # bytes


def have_same_samples(checkpoint: Checkpoint, a: str, b: str) -> bool | None:
    """Whether two tensors hold the same bytes, as far as pieces tell that are spread evenly over them; the whole where it is small.

    None where the values are not there: of an index, a saved header, a file that is missing.

    Raises: ParamcountError where a file is another by now.
    """
    first, second = checkpoint.tensors[a], checkpoint.tensors[b]
    files = {file.name: file for file in checkpoint.files}
    left, right = files.get(first.file), files.get(second.file)
    if left is None or right is None or left.state is None or right.state is None:
        return None
    if first.start is None or second.start is None or first.size is None:
        return None
    if (first.dtype, first.shape, first.size) != (second.dtype, second.shape, second.size):
        return False
    with open_regular(left.path, "a checkpoint") as one, open_regular(right.path, "a checkpoint") as other:
        check_unchanged(left.path, one, left.state)
        check_unchanged(right.path, other, right.state)
        return all(
            _read(one, first.start + at, n) == _read(other, second.start + at, n) for at, n in pieces(first.size)
        )


def pieces(size: int) -> list[tuple[int, int]]:
    """Where the pieces of so many bytes begin, and how long each is: the first begins at the start, the last ends at the end.

    >>> pieces(10_000)
    [(0, 10000)]
    >>> len(pieces(2 << 30)), pieces(2 << 30)[1], pieces(2 << 30)[-1]
    (64, (34086977, 4096), (2147479552, 4096))
    """
    if size <= PIECES * PIECE:
        return [(0, size)]
    return [(i * (size - PIECE) // (PIECES - 1), PIECE) for i in range(PIECES)]


def _read(file: BinaryIO, at: int, n: int) -> bytes:
    file.seek(at)
    return file.read(n)
