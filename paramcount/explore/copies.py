"""A model as text to change: its zoo entry without what was checked or published, and a config.json."""

from __future__ import annotations

import copy
import datetime
from contextlib import suppress
from typing import Any

from paramcount import __version__
from paramcount.errors import ParamcountError
from paramcount.huggingface.config import read_config
from paramcount.sizes import Sizes, get_key, inner_configs
from paramcount.sizes.key_names import find_main_key
from paramcount.sizes.values import to_json
from paramcount.zoo import Model
from paramcount.zoo.adding import FAMILY, UNCHANGED
from paramcount.zoo.entries import Entry, Source
from paramcount.zoo.what_if import change_sizes, get_size
from paramcount.zoo.writing import format_entry


def export_yaml(model: Model) -> str | None:
    """A zoo entry with the sizes of a model, unverified; None for a model that is not from the zoo."""
    if model.entry is None:
        return None
    source = Source(
        id="config", kind="publisher", ref=f"paramcount {__version__}, changed from {model.id}",
        accessed=datetime.date.today(),
    )  # fmt: skip
    return format_entry(
        Entry(
            id=f"{model.id}-changed",
            name=f"{model.name}, changed",
            family=FAMILY,
            architecture=model.architecture,
            config=model.sizes,
            settings=model.entry.settings,
            release=UNCHANGED,
            sources=(source,),
        )
    )


def export_config(model: Model) -> dict[str, Any] | None:
    """{"document": a config.json, "keys": {size: its place}}; None if the sizes cannot be stated so.

    Reading the document must give the same sizes, also after a change of any key.
    """
    sizes = model.sizes
    document: dict[str, Any] = {"model_type": model.architecture, "architectures": [model.sizes.reference]}
    keys: dict[str, list[str]] = {}
    try:
        fill_section(document, sizes, "", (), keys)
        is_same = read_config(document).sizes == sizes
    except ParamcountError:
        return None
    return {"document": document, "keys": keys} if is_same and are_read(model, document, keys) else None


def are_read(model: Model, document: dict[str, Any], keys: dict[str, list[str]]) -> bool:
    """Whether a change of a key changes its size and nothing else, where the reference accepts the change."""
    for path, place in keys.items():
        value = get_size(model.sizes, path)
        if type(value) is not int:
            continue
        changed = copy.deepcopy(document)
        section = changed
        for step in place[:-1]:
            section = section[step]
        section[place[-1]] = 2 * value
        with suppress(ParamcountError):
            if read_config(changed).sizes != change_sizes(model, {path: 2 * value}).sizes:
                return False
    return True


def fill_section(
    document: dict[str, Any], sizes: Sizes, block: str, at: tuple[str, ...], keys: dict[str, list[str]]
) -> None:
    """Add the keys of sizes, and those of inner configs in sections of their own."""
    inner = inner_configs(type(sizes))
    for name, value in sizes.__dict__.items():
        if name in inner:
            if isinstance(value, Sizes):
                section = tuple((value.section or "").split("."))
                fill_section(document, value, f"{block}{name}.", section, keys)
            continue
        spellings = get_key(type(sizes), name).spellings(name)
        if not spellings:
            continue
        key = find_main_key(spellings, document)
        place = [*at, *key.split(".")] if not key.startswith("/") else key[1:].split(".")
        target: Any = document
        for step in place[:-1]:
            target = target.setdefault(step, {})
        target[place[-1]] = to_json(value)
        keys[block + name] = place
