"""Safe reading of untrusted files: regular files only, up to a size limit."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from paramcount.errors import ParamcountError, locate_errors, make_printable

LFS = b"version https://git-lfs"

# The first bytes of files that users often pass by mistake.
SIGNATURES = (
    (b"GGUF", "a GGUF file"),
    (b"PK\x03\x04", "a zip archive, probably a PyTorch checkpoint"),
    *((bytes([0x80, protocol]), "a pickle") for protocol in (2, 3, 4, 5)),
    (LFS, "a Git LFS pointer; run `git lfs pull` to fetch the file"),
)


class FileState(NamedTuple):
    """The identity, size and modification time of a file."""

    device: int
    inode: int
    size: int  # bytes
    modified: int  # nanoseconds


def get_file_state(file: BinaryIO) -> FileState:
    status = os.fstat(file.fileno())
    return FileState(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def check_unchanged(path: Path, file: BinaryIO, state: FileState) -> None:
    """Raises: ParamcountError if an open file differs from its earlier state."""
    if get_file_state(file) != state:
        raise ParamcountError("changed while paramcount was reading it", where=make_printable(path))


@contextmanager
def open_regular(path: Path, what: str) -> Iterator[BinaryIO]:
    """A regular file opened for reading. `what`: the expected kind of file, for errors.

    Raises: ParamcountError that names the file if it cannot be read or is not a regular file.
    """
    place = make_printable(path)
    try:
        try:
            is_file = stat.S_ISREG(path.stat().st_mode)
        except ValueError:  # a NUL, a lone surrogate
            raise ParamcountError("cannot be read: invalid file name", where=place) from None
        if not is_file:  # a pipe may never end
            raise ParamcountError("is not a file", where=place, expected=what)
        with path.open("rb") as file:
            yield file
    except OSError as error:
        if isinstance(error, FileNotFoundError) and path.is_symlink():
            problem = "is a broken link"
        else:
            problem = f"cannot be read: {error.strerror or type(error).__name__}"
        raise ParamcountError(problem, where=place) from None


def read_text(path: Path, what: str, most: int) -> str:
    """The text of a UTF-8 file. `what`: the expected kind of file, for errors. `most`: maximum size in bytes.

    Raises: ParamcountError that names the file if it is unreadable, too large, not a regular file or not text.
    """
    with open_regular(path, what) as file:
        size = os.fstat(file.fileno()).st_size or most
        data = file.read(min(size, most) + 1)  # read(n) allocates n bytes even for a shorter file
    with locate_errors(path):
        return decode_text(data, what, most)


def read_table(path: Path) -> tuple[tuple[str, ...], ...]:
    """The words of each row of a table that is part of the package; lines that begin with # are comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(tuple(line.split()) for line in lines if not line.startswith("#"))


def decode_text(data: bytes, what: str, most: int) -> str:
    """Bytes as text.

    Raises: ParamcountError for a binary file, which it names if possible, and for more than `most` bytes.
    """
    for signature, name in SIGNATURES:
        if data.startswith(signature):
            raise ParamcountError(f"is {name}", expected=what)
    if data[8:10] == b'{"' and len(data) > 10 and data[7] == 0:
        raise ParamcountError("is a safetensors file", expected=what)
    if len(data) > most:
        raise ParamcountError("is too large", expected=f"{what} of at most {most:,} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ParamcountError("is not valid UTF-8", expected=what) from None


def expand_home(path: str) -> Path:
    """A path with ~ expanded to the home directory.

    Raises: ParamcountError if the home directory is unknown.
    """
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError):  # unknown or invalid user names
        raise ParamcountError("cannot be read: no such home directory", where=make_printable(path)) from None
