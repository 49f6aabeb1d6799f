"""Every config.json below a directory: one row each, what could not be read, and what was skipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, make_printable, make_strict_error
from paramcount.views.compare import rows_of
from paramcount.zoo import Model

PEOPLE = "id,total,active,bytes_bf16,architecture"
EXPECTED = "a directory with config.json files below it"
SKIPPED = {".git": "holds Git's own files", ".no_exist": "holds the Hugging Face cache's notes on missing files"}


class Problem(NamedTuple):
    """A path below the directory, and what is wrong with it."""

    path: str
    problem: str


class Scan(NamedTuple):
    """What a scan found. A row's id is the path below the directory."""

    rows: list[dict[str, Any]]  # as of `comparing.rows_of`
    errors: list[Problem]  # configs that cannot be counted
    unreadable: list[Problem]  # directories that cannot be read
    skipped: list[Problem]  # directories that are not looked into
    warnings: list[Problem]  # configs that were counted and may not say what they mean

    def to_dict(self) -> dict[str, Any]:
        """What was not counted and what was warned of, as plain data for JSON."""
        listed = {name: [problem._asdict() for problem in getattr(self, name)] for name in ("errors", "unreadable", "skipped")}
        return listed | {"warnings": [f"{path}: {problem}" for path, problem in self.warnings]}


class Listing(NamedTuple):
    """The paths of a directory tree."""

    configs: list[Path]
    unreadable: list[Problem]
    skipped: list[Problem]


def scan_folder(folder: Path, load: Callable[[Path], Model], progress: Callable[[list[Path]], Iterable[Path]] = iter, *, strict: bool = False) -> Scan:
    """The counts of every config.json below a directory. A config that cannot be counted never stops the others.

    `load` loads the model of a config.json. `strict`: a config with warnings is an error.

    Raises: ParamcountError if there is no config.json.
    """
    listing = find_configs(folder)
    if not listing.configs:
        raise no_config(folder, listing)
    found = Scan([], [], listing.unreadable, listing.skipped, [])
    for path in progress(listing.configs):
        name = make_printable(path.parent.relative_to(folder))
        try:
            model = load(path)
            if model.warnings and strict:
                raise make_strict_error(model.warnings)
            found.rows.extend(row | {"id": name} for row in rows_of([model]))
            found.warnings.extend(Problem(name, text) for text in model.warnings)
        except ParamcountError as error:
            found.errors.append(Problem(name, str(error).removeprefix(f"{make_printable(path)}: ")))
    return found


def find_configs(folder: Path) -> Listing:
    """Every config.json below a directory, each once, in order. Links to directories are not followed.

    Raises: ParamcountError where the directory itself cannot be read.
    """
    listing = Listing([], [], [])
    waiting = [str(folder)]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                names = sorted(entries, key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            problem = f"cannot be read: {error.strerror or type(error).__name__}"
            if place == str(folder):
                raise ParamcountError(problem, where=make_printable(folder), expected=EXPECTED) from None
            listing.unreadable.append(Problem(relative(place, folder), problem))
            continue
        for entry in names:
            if entry.is_dir(follow_symlinks=False):
                if entry.name in SKIPPED:
                    listing.skipped.append(Problem(relative(entry.path, folder), SKIPPED[entry.name]))
                else:
                    waiting.append(entry.path)
            elif entry.is_symlink() and os.path.isdir(entry.path):
                listing.skipped.append(Problem(relative(entry.path, folder), "is a symbolic link to a directory"))
            elif entry.name == "config.json":
                listing.configs.append(Path(entry.path))
    listing.skipped.sort()
    return listing


def relative(path: str, folder: Path) -> str:
    """A path below the directory, as a message shows it."""
    return make_printable(Path(path).relative_to(folder))


def no_config(folder: Path, listing: Listing) -> ParamcountError:
    """What to say of a directory without any config.json."""
    problem = "holds no config.json, nor does any directory below it"
    if listing.unreadable:
        first, n = listing.unreadable[0], len(listing.unreadable)
        problem = f"holds no config.json that can be read; {n:,} director{'y' if n == 1 else 'ies'} cannot be read, such as {first.path}"
    elif listing.skipped:
        first = listing.skipped[0]
        problem = f"holds no config.json; skipped: {first.path} {first.problem}" + (f", and {n:,} more" if (n := len(listing.skipped) - 1) else "")
    return ParamcountError(problem, where=make_printable(folder), expected="a cache or a model store")
