"""Whether two tensors have the same values, judged by samples of their bytes."""

from __future__ import annotations

from typing import BinaryIO

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.formats.files import check_unchanged, open_regular

MOST_SAMPLES = 64
SAMPLE_SIZE = 4096  # bytes


def have_same_samples(checkpoint: Checkpoint, a: str, b: str) -> bool | None:
    """Whether evenly spaced samples of two tensors have the same bytes; a small tensor is compared whole.

    None if the values are not available: from an index, a saved header or a missing file.

    Raises: ParamcountError if a file has changed since its header was read.
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
        samples = place_samples(first.size)
        return all(_read_at(one, first.start + at, n) == _read_at(other, second.start + at, n) for at, n in samples)


def place_samples(size: int) -> list[tuple[int, int]]:
    """The offset and length of each sample of a tensor. The first sample is at the start and the last at the end.

    >>> place_samples(10_000)
    [(0, 10000)]
    >>> len(place_samples(2 << 30)), place_samples(2 << 30)[1], place_samples(2 << 30)[-1]
    (64, (34086977, 4096), (2147479552, 4096))

    Units: bytes
    """
    if size <= MOST_SAMPLES * SAMPLE_SIZE:
        return [(0, size)]
    return [(i * (size - SAMPLE_SIZE) // (MOST_SAMPLES - 1), SAMPLE_SIZE) for i in range(MOST_SAMPLES)]


def _read_at(file: BinaryIO, offset: int, n: int) -> bytes:
    file.seek(offset)
    return file.read(n)
