"""Every config.json below a directory: one row each, and what could not be counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from paramcount.comparing import rows_of
from paramcount.config_files import below, from_path
from paramcount.errors import ParamcountError, printable

PEOPLE = "id,total,active,bytes_bf16,architecture"


class Scan(NamedTuple):
    """What a scan found. A row's id is the path below the directory."""

    rows: list[dict[str, Any]]  # as of `comparing.rows_of`
    errors: list[tuple[str, str]]  # (path, problem)


def scanned(folder: Path, progress: Callable[[list[Path]], Iterable[Path]] = iter) -> Scan:
    """The counts of every config.json below a directory. One that cannot be counted never stops the others.

    Raises: ParamcountError where there is none.
    """
    paths = list(below(folder))
    if not paths:
        raise ParamcountError("holds no config.json, nor does any directory below it", where=printable(folder), accepted="a cache or a model store")
    found = Scan([], [])
    for path in progress(paths):
        name = printable(path.parent.relative_to(folder))
        try:
            found.rows.extend(row | {"id": name} for row in rows_of([from_path(path)]))
        except ParamcountError as error:
            found.errors.append((name, str(error).removeprefix(f"{printable(path)}: ")))
    return found
