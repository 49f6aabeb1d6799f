"""Check files of zoo entries: schema, names, counts and published figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from paramcount.errors import ParamcountError, make_printable
from paramcount.zoo import catalog
from paramcount.zoo.checks import run_checks
from paramcount.zoo.entries import Entry, read_entry
from paramcount.zoo.model import count_model, make_model
from paramcount.zoo.names import index_built_in_spellings, normalize_name


class Validation(NamedTuple):
    """The result for one file."""

    path: str
    id: str | None
    total: int | None
    errors: tuple[str, ...]
    warnings: tuple[str, ...] = ()  # published figures that differ: they may be the publisher's mistake


def find_entries(paths: Iterable[str]) -> list[Path]:
    """The files that `paths` name: files as they are, and every YAML file below a directory.

    Raises: ParamcountError for a path that does not exist, and for a directory without YAML files.
    """
    found: dict[Path, None] = {}
    for word in paths:
        path = Path(word).expanduser()
        try:
            is_directory, exists = path.is_dir(), path.exists()
        except (OSError, ValueError):  # a NUL in the name
            is_directory, exists = False, False
        if not exists:
            raise ParamcountError("does not exist", where=make_printable(word), expected="a file or directory")
        files = sorted(file for end in ("yaml", "yml") for file in path.rglob(f"*.{end}")) if is_directory else [path]
        if not files:
            raise ParamcountError("has no YAML files", where=make_printable(word), expected="entries such as my.yaml")
        found.update(dict.fromkeys(files))
    return list(found)


def validate_entries(paths: Iterable[Path], *, root: Path | None = None) -> Iterator[Validation]:
    """Check each file, alone and against the others and the built-in zoo.

    `root`: the folder of a zoo, in which every command looks for <family>/<id>.yaml alone.
    """
    owners: dict[str, str] = {}
    for path in paths:
        place = make_printable(path)
        try:
            entry = read_entry(path)
            if root:
                catalog.check_place(entry, path, root)
            yield validate_entry(entry, place, tuple(list_shared_names(entry, path, owners)))
        except ParamcountError as error:
            yield Validation(place, None, None, (str(error.remove_location(place)),))


def validate_entry(entry: Entry, place: str, shared_names: tuple[str, ...]) -> Validation:
    """The result for an entry that is valid YAML: its id, its sources, and its count against what it cites."""
    errors = list(shared_names)
    if not catalog.ID.fullmatch(entry.id):
        errors.append(f"id = {make_printable(entry.id)} (expected {catalog.ID_CHARACTERS})")
    if not entry.sources:
        errors.append("sources are missing (expected where the config comes from)")
    if entry.estimate:
        return Validation(place, entry.id, None, tuple(errors))
    model = make_model(entry)
    count = count_model(model)
    wrong = [check for check in run_checks(model, count) if check.ok is False]
    texts = {check: f"{check.what} {check.text} differs from paramcount's {check.found:,}" for check in wrong}
    errors += [text for check, text in texts.items() if check.what == "reference"]
    warnings = [text for check, text in texts.items() if check.what != "reference"]
    return Validation(place, entry.id, count.total, tuple(errors), tuple(warnings))


def list_shared_names(entry: Entry, path: Path, owners: dict[str, str]) -> Iterator[str]:
    """Names of the entry that another file or a built-in model has too."""
    is_built_in = path.resolve().is_relative_to(catalog.CONFIGS.resolve())
    for name in (entry.id, *entry.aliases):
        spelling = normalize_name(name)
        taken = None if is_built_in else index_built_in_spellings().get(spelling)
        if taken is not None:
            yield f"{name} names the built-in model {taken}"
        if owners.setdefault(spelling, str(path)) != str(path):
            yield f"{name} also names the model in {make_printable(owners[spelling])}"
