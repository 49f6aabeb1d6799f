"""Output files: the format that a file's extension selects, and atomic writes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from paramcount.errors import ParamcountError, find_nearest, join_words, make_printable

T = TypeVar("T")

EXTENSIONS = {
    ".txt": "table",
    ".md": "markdown",
    ".markdown": "markdown",
    ".csv": "csv",
    ".json": "json",
    ".tex": "latex",
    ".html": "html",
    ".htm": "html",
}
ANY_EXTENSION = "with --format, any extension"


def choose_format(format: str | None, flags: Sequence[str], output: str | None) -> str:
    """The output format: from --format, a short option such as --csv, or the extension of the output file.

    Raises: ParamcountError for two formats, for a format that contradicts the extension, and for an unknown extension
        without a format.
    """
    formats = [*([format] if format else []), *flags]
    if len(set(formats)) > 1:
        options = [*([f"--format {format}"] if format else []), *(f"--{flag}" for flag in flags)]
        raise ParamcountError(f"{join_words(options, 'and')} cannot be combined", expected="one format")
    if output in (None, "-"):
        return formats[0] if formats else "table"
    if not formats:
        return choose_by_extension(str(output), EXTENSIONS, or_else=ANY_EXTENSION)
    extension = Path(str(output)).suffix.lower()
    valid = [suffix for suffix, name in EXTENSIONS.items() if name == formats[0]]
    if extension in EXTENSIONS and extension not in (*valid, ".txt"):  # a .txt file may contain any format
        raise ParamcountError(
            f"{make_printable(output, 60)} has the wrong extension for {formats[0]} output",
            where="-o",
            expected=join_words(dict.fromkeys((*valid, ".txt"))),
        )
    return formats[0]


def choose_by_extension(path: str, extensions: Mapping[str, T], *, where: str = "-o", or_else: str = "") -> T:
    """The value for a file's extension. `where`: the option, for errors. `or_else`: what else would be valid.

    >>> choose_by_extension("sizes.PNG", {".png": "png", ".svg": "svg"})
    'png'

    Raises: ParamcountError for any other extension.
    """
    extension = Path(path).suffix.lower()
    if extension not in extensions:
        raise ParamcountError(
            f"unknown extension {make_printable(extension, 20)!r}" if extension else "missing extension",
            where=where,
            expected=join_words(extensions) + (f"; {or_else}" if or_else else ""),
            nearest=find_nearest(extension, extensions),
        )
    return extensions[extension]


def check_is_html(path: str) -> None:
    """Check the extension of a page. Raises: ParamcountError for any but .html and .htm."""
    choose_by_extension(path, {suffix: name for suffix, name in EXTENSIONS.items() if name == "html"})


SYSTEM_DIRECTORIES = ("/dev", "/proc", "/sys")  # nothing is created here; /dev/shm contains ordinary files


def is_system_path(path: Path) -> bool:
    """Whether a path is in a directory of devices or kernel files, existing or not."""
    absolute = Path(os.path.abspath(path))  # does not follow a link such as /dev/stdout
    if absolute.is_relative_to("/dev/shm"):  # noqa: S108
        return False
    return any(absolute.is_relative_to(directory) for directory in SYSTEM_DIRECTORIES)


def write_atomically(path: str, content: str | bytes, option: str = "-o") -> None:
    """Write a file atomically; devices and pipes are written directly. `option`: its name in error messages.

    Raises: ParamcountError if the file cannot be written; an existing file is then unchanged.
    """
    where = f"{option} {make_printable(path)}"
    try:
        data = content.encode("utf-8") if isinstance(content, str) else content
    except UnicodeEncodeError as error:
        raise ParamcountError(f"cannot be written: {error.reason} at character {error.start:,}", where=where) from None
    with open_atomically(path, option) as file:
        file.write(data)


@contextmanager
def open_atomically(path: str, option: str = "-o") -> Iterator[BinaryIO]:
    """A file to write, which replaces an existing one only if the block ends without an error. Devices and pipes are
    written directly. `option`: its name in error messages.

    Raises: ParamcountError if the file cannot be written; an existing file is then unchanged.
    """
    where = f"{option} {make_printable(path)}"
    try:
        with ExitStack() as stack:
            try:
                file = stack.enter_context(_open(Path(path).expanduser()))
            except ValueError:  # a NUL or a lone surrogate; Python's own message depends on its version
                raise ParamcountError("cannot be written: invalid file name", where=where) from None
            yield file
    except BrokenPipeError:
        raise
    except (OSError, RuntimeError) as error:
        problem = getattr(error, "strerror", None) or error
        raise ParamcountError(f"cannot be written: {problem}", where=where) from None


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    """A temporary file in the same directory, renamed at the end."""
    import tempfile

    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    if is_system_path(path) or (mode is not None and not stat.S_ISREG(mode)):
        # no flag to create it, should it be gone meanwhile
        with open(path, "ab", opener=lambda name, flags: os.open(name, flags & ~os.O_CREAT)) as file:
            yield file
        return
    if mode is not None and not os.access(path, os.W_OK):
        raise PermissionError(13, "the file is read-only")
    path = path.resolve()
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".paramcount-")
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask if mode is None else mode & 0o777)
        if is_system_path(path) or (path.exists() and not path.is_file()):  # a device may have come back meanwhile
            raise PermissionError(13, "not a regular file")
        os.replace(temporary, path)
        sync_directory(path.parent)
    finally:
        Path(temporary).unlink(missing_ok=True)


def sync_directory(folder: Path) -> None:
    """Flush a directory to disk, so that a rename survives a power failure, if the system supports it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
