"""A model as text to change: its zoo entry without what was checked or published, and a config.json."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from paramcount import __version__
from paramcount.architectures import split_name
from paramcount.errors import ParamcountError
from paramcount.huggingface.config import read_config
from paramcount.huggingface.multimodal import COMPOSITES, TIE_KEY
from paramcount.sizes import Sizes, get_key, inner_configs
from paramcount.sizes.key_names import find_main_key
from paramcount.sizes.values import to_json
from paramcount.zoo import Model
from paramcount.zoo.adding import FAMILY, UNCHANGED
from paramcount.zoo.entries import OPEN_PARTS, Entry, Source, name_part
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

    Reading the document gives the same sizes. `keys` has the sizes whose change is one of a key.
    """
    sizes = model.sizes
    document = {**copy_plain(model.stated or {}), "model_type": model.architecture}
    document["architectures"] = [sizes.reference.partition(" of ")[0]]
    keys: dict[str, list[str]] = {}
    if language := getattr(sizes, "language", None):
        document[TIE_KEY] = language.tie_word_embeddings
    try:
        fill_section(document, sizes, "", find_section(sizes), keys)
        is_same = read_config(document).sizes == sizes
    except ParamcountError:
        return None
    keys = {path: place for path, place in keys.items() if is_read(model, document, path, place)}
    return {"document": document, "keys": keys} if is_same else None


def copy_plain(value: Any) -> Any:
    """The same objects and lists, free to be changed."""
    if isinstance(value, Mapping):
        return {key: copy_plain(inner) for key, inner in value.items()}
    return [copy_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def find_section(sizes: Sizes, name: str = "", document: Mapping[str, Any] = {}) -> tuple[str, ...]:
    """The place of the keys of an architecture, or of a part called `name` of the model in a config.json."""
    composite = COMPOSITES.get(document.get("model_type", ""))
    if name == "language" and composite:
        return (composite.section,)
    return tuple(sizes.section.split(".")) if sizes.section else (name,) if name else ()


def is_read(model: Model, document: dict[str, Any], path: str, place: Sequence[str]) -> bool:
    """Whether a change of a key changes its size and nothing else, where the reference accepts the change."""
    value = get_size(model.sizes, path)
    if type(value) is not int:
        return True
    changed = copy_plain(document)
    find_object(changed, place)[place[-1]] = 2 * value
    with suppress(ParamcountError):
        return bool(read_config(changed).sizes == change_sizes(model, {path: 2 * value}).sizes)
    return True


def find_object(document: dict[str, Any], place: Sequence[str]) -> dict[str, Any]:
    """The object that has the key at a place; objects that are missing are added."""
    for step in place[:-1]:
        document = document.setdefault(step, {})
    return document


def fill_section(
    document: dict[str, Any], sizes: Sizes, block: str, at: tuple[str, ...], keys: dict[str, list[str]]
) -> None:
    """Add the keys of sizes, and those of inner configs in sections of their own."""
    inner = inner_configs(type(sizes))
    for name, value in sizes.__dict__.items():
        if name in inner:
            if isinstance(value, Sizes):
                section = find_section(value, name, document)
                if inner[name] in OPEN_PARTS:
                    find_object(document, (*section, ""))["model_type"], _ = split_name(
                        name_part(inner[name], type(value))
                    )
                fill_section(document, value, f"{block}{name}.", section, keys)
            continue
        spellings = get_key(type(sizes), name).spellings(name)
        if not spellings:
            continue
        key = find_main_key(spellings, document)
        place = [*at, *key.split(".")] if not key.startswith("/") else key[1:].split(".")
        find_object(document, place)[place[-1]] = to_json(value)
        keys[block + name] = place
