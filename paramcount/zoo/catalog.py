"""The catalogue of the zoo: its ids and families, and loading an entry by its id."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from paramcount.errors import ParamcountError, make_printable, quote
from paramcount.formats.strict_yaml import read_yaml
from paramcount.zoo.entries import Entry, read_entry
from paramcount.zoo.model import Model, make_model

PACKAGE = Path(__file__).parents[1]
IS_INSTALLED = (PACKAGE / "configs").is_dir()  # a wheel has the zoo inside the package, a checkout next to it
CONFIGS = PACKAGE / "configs" if IS_INSTALLED else PACKAGE.parent / "configs"
SIZE_WORDS = ("small", "medium", "large", "xl")
ID = re.compile(r"[a-z0-9][a-z0-9.\-]{0,99}")
ID_CHARACTERS = "lower-case letters, digits, dots and hyphens"


@cache
def _load_built_in(id: str, path: Path) -> Model:
    """A model of the installation, whose files do not change while it runs."""
    return _read_model(path)


@cache
def _load_own(id: str, path: Path) -> Model:
    return replace(_read_model(path), is_own=True)


def _read_model(path: Path) -> Model:
    entry = read_entry(path)
    check_place(entry, path)
    return make_model(entry)


def check_place(entry: Entry, path: Path, root: Path | None = None) -> None:
    """Raises: ParamcountError if file and folder are not named after the entry, or if the folder is not in `root`."""
    place = f"{path.parent.name}/{path.name}"
    if place != f"{entry.family}/{entry.id}.yaml" or root not in (None, path.parent.parent):
        found = f"id {entry.id} of family {entry.family} is in {place if root is None else path.relative_to(root)}"
        raise ParamcountError(found, where=make_printable(path), expected="<family>/<id>.yaml")


def get_user_folder() -> Path:
    """The folder of the user's own entries: PARAMCOUNT_CONFIGS, or `configs` in the user's data directory."""
    if folder := os.environ.get("PARAMCOUNT_CONFIGS"):
        return Path(folder).expanduser()
    from platformdirs import user_data_path  # imported here: 5 ms, and a built-in id does without

    return user_data_path("paramcount", appauthor=False) / "configs"


def find_path(id: str) -> Path | None:
    """The file of a zoo id, built-in or the user's own; None if there is no such id. Looks in no other folder.

    Raises: ParamcountError if an entry of the user has the id of a built-in model.
    """
    family = find_built_in_family(id)
    return map_own_paths().get(id) if family is None else CONFIGS / family / f"{id}.yaml"


@cache
def find_built_in_family(id: str) -> str | None:
    """The family of a built-in model; None if there is no such model. One name costs little: no folder is listed."""
    if map_built_in_paths.cache_info().currsize:
        return _list_files(CONFIGS).get(id)
    families = os.listdir(CONFIGS) if ID.fullmatch(id) and CONFIGS.is_dir() else []
    found = (family for family in families if os.path.isfile(os.path.join(CONFIGS, family, f"{id}.yaml")))
    return next(found, None) or _list_files(CONFIGS).get(id)


@lru_cache(maxsize=1)
def map_built_in_paths() -> dict[str, Path]:
    """{id: file} of the built-in models, by family and in natural order: qwen2.5-7b before qwen2.5-14b.

    Raises: ParamcountError if the installation lacks the zoo.
    """
    return _map_paths(CONFIGS)


@lru_cache(maxsize=1)
def map_own_paths() -> dict[str, Path]:
    """{id: file} of the user's entries; empty if there are none.

    Raises: ParamcountError if the folder cannot be read, or if an entry has the id of a built-in model.
    """
    root = get_user_folder()
    try:
        paths = _map_paths(root)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        found = f"cannot read your entries: {getattr(error, 'strerror', None) or error}"
        raise ParamcountError(found, where=make_printable(root), expected="a readable folder") from None
    for id, path in paths.items():
        if id in map_built_in_paths():
            found = f"has the id of the built-in model {id}"
            raise ParamcountError(found, where=make_printable(path), expected="another id")
    return paths


def _map_paths(root: Path) -> dict[str, Path]:
    """{id: file} by family and in natural order."""
    pairs = sorted(_list_files(root).items(), key=lambda pair: (pair[1], natural_sort_key(pair[0])))
    return {id: root / family / f"{id}.yaml" for id, family in pairs}


@cache
def _list_files(root: Path) -> dict[str, str]:
    """{id: family} of the entries in a folder.

    Raises: ParamcountError if the installation lacks the zoo; OSError if another folder cannot be read.
    """
    found: dict[str, str] = {}
    try:
        with os.scandir(root) as entries:
            families = [entry.name for entry in entries if entry.is_dir()]
        for family in families:
            ids = [name[:-5] for name in os.listdir(os.path.join(root, family)) if name.endswith(".yaml")]
            found.update((id, family) for id in ids if ID.fullmatch(id))
    except OSError as error:
        if root != CONFIGS:
            raise
        raise _make_zoo_error(f"cannot read the zoo: {error.strerror}") from None
    if root == CONFIGS and not found:
        raise _make_zoo_error("the zoo is empty")
    return found


def _make_zoo_error(found: str) -> ParamcountError:
    return ParamcountError(found, where=make_printable(CONFIGS), expected="a complete installation of paramcount")


@lru_cache(maxsize=1)
def list_families() -> dict[str, tuple[str, ...]]:
    """{family: its ids}, the user's own entries after the built-in models."""
    families: dict[str, list[str]] = {}
    for id, path in (*map_built_in_paths().items(), *map_own_paths().items()):
        families.setdefault(path.parent.name, []).append(id)
    return {family: tuple(families[family]) for family in sorted(families)}


def list_ids(family: str | None = None, *, own: bool = True) -> Iterator[str]:
    """The ids of a family, or of the whole zoo, with or without the user's own."""
    for name, ids in list_families().items():
        if family in (None, name):
            yield from ids if own else (id for id in ids if id in map_built_in_paths())


def list_paths(*, own: bool = True) -> list[Path]:
    """The files of the whole zoo, with or without the user's own, in the order of `list_ids`."""
    paths = map_built_in_paths() | map_own_paths()
    return [paths[id] for id in list_ids(own=own)]


def load_all() -> list[Model]:
    """Every model of the zoo, third-party estimates included."""
    return [load_entry(id) for id in list_ids()]


def clear_caches() -> None:
    """Forget what the folders contain, after an entry was added or PARAMCOUNT_CONFIGS changed."""
    for cached in (_load_own, _list_files, find_built_in_family, map_built_in_paths, map_own_paths, list_families):
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
    return _load_built_in(id, path) if path.is_relative_to(CONFIGS) else _load_own(id, path)


def list_names(id: str) -> list[str]:
    """The names of an entry: id, name, Hugging Face id, aliases.

    Reads only the beginning of the file, because a lookup by name reads every file.
    """
    path = find_path(id)
    if path is None:
        return [id]
    head = _read_head(path) if path.is_relative_to(CONFIGS) else read_yaml(path, until="architecture")
    aliases = head.get("aliases")
    return [
        name
        for name in (id, head.get("name"), head.get("hf"), *(aliases if isinstance(aliases, list) else []))
        if isinstance(name, str)
    ]


def _read_head(path: Path) -> dict[str, Any]:
    """The names at the beginning of a built-in file: a tenth of the time of YAML, which matters for 500 files.

    It reads what `paramcount.zoo.writing` writes, one value per line; a test compares it with YAML for every file.
    """
    head: dict[str, Any] = {"aliases": []}
    with path.open(encoding="utf-8") as file:
        for line in file:
            key, _, text = line.strip().partition(": ")
            if key in ("architecture", "estimate"):
                break
            if line.startswith("  - "):
                head["aliases"].append(_read_string(line[4:].strip()))
            elif key in ("name", "hf"):
                head[key] = _read_string(text)
    return head


def _read_string(text: str) -> str | None:
    value: str | None = json.loads(text) if text.startswith('"') else None if text == "null" else text
    return value
