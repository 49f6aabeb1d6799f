"""The catalogue of the zoo: its ids and families, and loading an entry by its id."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from paramcount.errors import ParamcountError, make_printable, quote
from paramcount.formats.strict_yaml import read_yaml
from paramcount.zoo.entries import Entry, read_entry
from paramcount.zoo.model import Model, make_model

PACKAGE = Path(__file__).parents[1]
IS_INSTALLED = (PACKAGE / "configs").is_dir()  # a wheel has the zoo inside the package, a checkout next to it
CONFIGS = PACKAGE / "configs" if IS_INSTALLED else PACKAGE.parent / "configs"
SIZE_WORDS = ("small", "medium", "large", "xl")
ID = re.compile(r"[a-z0-9][a-z0-9.\-]{0,99}")


@cache
def _load(id: str, path: Path) -> Model:
    entry = read_entry(path)
    check_place(entry, path)
    return replace(make_model(entry), is_own=not path.is_relative_to(CONFIGS))


def check_place(entry: Entry, path: Path) -> None:
    """Raises: ParamcountError if the file and its folder are not named after the entry."""
    if (entry.id, entry.family) != (path.stem, path.parent.name):
        found = f"id {entry.id} of family {entry.family} is in {path.parent.name}/{path.name}"
        raise ParamcountError(found, where=make_printable(path), expected="<family>/<id>.yaml")


def get_user_folder() -> Path:
    """The folder of the user's own entries: PARAMCOUNT_CONFIGS, or `configs` in the user's data directory."""
    if folder := os.environ.get("PARAMCOUNT_CONFIGS"):
        return Path(folder).expanduser()
    from platformdirs import user_data_path  # imported here: 5 ms, and a built-in id does without

    return user_data_path("paramcount", appauthor=False) / "configs"


def find_path(id: str) -> Path | None:
    """The file of a zoo id, built-in or the user's own; None if there is no such id. Looks in no other folder."""
    if not ID.fullmatch(id):
        return None
    return _find_in(list_folders(), id) or _find_in(list_user_folders(), id)


def _find_in(folders: Iterable[Path], id: str) -> Path | None:
    paths = (folder / f"{id}.yaml" for folder in folders)
    return next((path for path in paths if path.is_file()), None)


@lru_cache(maxsize=1)
def list_folders() -> tuple[Path, ...]:
    """The folders of the built-in families.

    Raises: ParamcountError if the installation lacks the zoo.
    """
    where, expected = make_printable(CONFIGS), "a complete installation of paramcount"
    try:
        folders = tuple(folder for folder in sorted(CONFIGS.iterdir()) if folder.is_dir())
    except OSError as error:
        raise ParamcountError(f"cannot read the zoo: {error.strerror}", where=where, expected=expected) from None
    if not folders:
        raise ParamcountError("the zoo is empty", where=where, expected=expected)
    return folders


@lru_cache(maxsize=1)
def list_user_folders() -> tuple[Path, ...]:
    """The folders of the user's families; none if the user has no entries."""
    root = get_user_folder()
    try:
        return tuple(folder for folder in sorted(root.iterdir()) if folder.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (OSError, ValueError) as error:
        found = f"cannot read your entries: {getattr(error, 'strerror', None) or error}"
        raise ParamcountError(found, where=make_printable(root), expected="a readable folder") from None


@lru_cache(maxsize=1)
def list_families() -> dict[str, tuple[Path, ...]]:
    """{family: its folders}. A family has two folders if the user has added entries to a built-in one."""
    families: dict[str, tuple[Path, ...]] = {}
    for folder in (*list_folders(), *list_user_folders()):
        families[folder.name] = (*families.get(folder.name, ()), folder)
    return families


def list_ids(family: str | None = None) -> Iterator[str]:
    """The ids of a family, or of the whole zoo, in natural order: qwen2.5-7b before qwen2.5-14b.

    Raises: ParamcountError if an entry of the user has the id of a built-in model.
    """
    return (path.stem for path in list_paths(family))


def list_paths(family: str | None = None) -> Iterator[Path]:
    """The files of a family, or of the whole zoo, in the order of `list_ids`.

    Raises: ParamcountError if an entry of the user has the id of a built-in model.
    """
    for name, folders in list_families().items():
        if family in (None, name):
            paths = [path for folder in folders for path in folder.glob("*.yaml")]
            for path in paths:
                check_own_id(path)
            yield from sorted(paths, key=lambda path: natural_sort_key(path.stem))


def load_all() -> list[Model]:
    """Every model of the zoo, third-party estimates included."""
    return [_load(path.stem, path) for path in list_paths()]


def check_own_id(path: Path) -> None:
    """Raises: ParamcountError if an entry of the user has the id of a built-in model."""
    if path.is_relative_to(CONFIGS):
        return
    if built_in := _find_in(list_folders(), path.stem):
        found = f"has the id of the built-in model {built_in.stem}"
        raise ParamcountError(found, where=make_printable(path), expected="another id")


def clear_caches() -> None:
    """Forget what the folders contain, after an entry was added or PARAMCOUNT_CONFIGS changed."""
    for cached in (_load, list_folders, list_user_folders, list_families):
        cached.cache_clear()


def natural_sort_key(text: str) -> list[tuple[bool, float, str]]:
    """A sort key that compares numbers and size words by size: 9b before 14b, 500m before 1b, medium before large."""
    pieces = re.findall(r"\d+(?:\.\d+)?|\D+", text)
    key = []
    for i, piece in enumerate(pieces):
        if piece[0].isdigit():
            following = pieces[i + 1][:1] if i + 1 < len(pieces) else ""
            last = i + 1 >= len(pieces) or not pieces[i + 1][1:2].isalpha()
            unit = {"m": 1e6, "b": 1e9}.get(following if last else "", 1)
            key.append((False, float(piece) * unit, ""))
        else:
            rank = SIZE_WORDS.index(piece[1:]) if piece[1:] in SIZE_WORDS else 0
            key.append((True, float(rank), piece))
    return key


def load_entry(id: str) -> Model:
    """A zoo entry by its id.

    Raises: ParamcountError if there is no such id, or if its file is invalid.
    """
    path = find_path(id)
    if path is None:
        raise ParamcountError(f"no model {quote(id)} in the zoo")
    return _load(id, path)


def list_names(id: str) -> list[str]:
    """The names of an entry: id, name, Hugging Face id, aliases.

    Reads only the beginning of the file, because a lookup by name reads every file.
    """
    path = find_path(id)
    head = read_yaml(path, until="architecture") if path else {}
    aliases = head.get("aliases")
    return [
        name
        for name in (id, head.get("name"), head.get("hf"), *(aliases if isinstance(aliases, list) else []))
        if isinstance(name, str)
    ]
