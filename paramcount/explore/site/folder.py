"""A folder that is written beside its place and moved there when it is complete."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paramcount.errors import ParamcountError, make_printable
from paramcount.output.files import is_system_path

MARKER = ".paramcount-site"  # a file that lists what paramcount wrote into the folder
OPTION = "--site"


@contextmanager
def open_site_folder(directory: str) -> Iterator[Path]:
    """A temporary folder to write into, which replaces `directory` if the block ends without an error. What paramcount
    did not write, such as .git and CNAME, stays.

    Raises: ParamcountError if the directory is not empty and not a site of paramcount, or cannot be written.
    """
    where = f"{OPTION} {make_printable(directory)}"
    try:
        place = Path(directory).expanduser().resolve()
        kept = check_place(place, where)
        temporary = Path(tempfile.mkdtemp(dir=place.parent, prefix=".paramcount-"))
    except ParamcountError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        raise make_error(error, where) from None
    try:
        folder = temporary / "site"
        folder.mkdir()
        yield folder
        names = sorted(path.name for path in folder.iterdir())
        (folder / MARKER).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        replace_folder(folder, place, temporary / "old", [path for path in kept if path.name not in names])
    except OSError as error:
        raise make_error(error, where) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_place(place: Path, where: str) -> list[Path]:
    """What stays of an existing site."""
    expected = "a new or empty directory, or a site that paramcount has written"
    if is_system_path(place):
        raise ParamcountError("is a system directory", where=where, expected=expected)
    if not place.exists():
        if not place.parent.is_dir():
            raise ParamcountError("cannot be written: No such file or directory", where=where)
        return []
    if not place.is_dir():
        raise ParamcountError("is not a directory", where=where, expected=expected)
    content = list(place.iterdir())
    if content and not (place / MARKER).is_file():
        raise ParamcountError("is not empty", where=where, expected=expected)
    written = {MARKER, *(place / MARKER).read_text(encoding="utf-8").splitlines()} if content else set()
    return [path for path in content if path.name not in written]


def replace_folder(folder: Path, place: Path, old: Path, kept: list[Path]) -> None:
    """Move a folder to its place, with what stays of the one that was there. Nothing changes if that fails."""
    if not place.exists():
        folder.rename(place)
        return
    moved = []
    try:
        for path in kept:
            path.rename(folder / path.name)
            moved.append(path)
        place.rename(old)
    except OSError:
        for path in moved:
            (folder / path.name).rename(path)
        raise
    folder.rename(place)


def make_error(error: Exception, where: str) -> ParamcountError:
    problem = getattr(error, "strerror", None) or "invalid name"
    return ParamcountError(f"cannot be written: {problem}", where=where)
