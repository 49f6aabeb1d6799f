"""The sizes of a model as the keys of a config.json, each block in its section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paramcount.architectures import get_sections, split_name
from paramcount.explore.derived_keys import find_keys
from paramcount.huggingface.multimodal import TIE_KEY
from paramcount.sizes import Sizes, get_key, inner_configs
from paramcount.sizes.key_names import find_main_key
from paramcount.sizes.values import to_json
from paramcount.zoo import Model
from paramcount.zoo.entries import OPEN_PARTS, name_part

CONTEXT_KEY = "max_position_embeddings"
Place = Sequence[str]  # the way to a key, or to a section


class ConfigBlock(NamedTuple):
    """The sizes of a model or of one of its parts, and where a config.json has them."""

    path: str  # with a dot at its end; empty for the model itself
    sizes: Sizes
    section: Place
    root: Place  # the section that is read as a whole config.json
    architecture: str = ""  # of a part that can be any


def list_blocks(sizes: Sizes, stated: Mapping[str, Any], path: str = "", root: Place = ()) -> Iterator[ConfigBlock]:
    """The blocks inside of some sizes. `stated`: the config.json, with its model type."""
    for name, inner in inner_configs(type(sizes)).items():
        part = getattr(sizes, name)
        if not isinstance(part, Sizes):
            continue
        named = type(sizes).named_parts.get(name)
        section = (*root, *find_section(part, name, stated, (named.section or name) if named else ""))
        is_open = inner in OPEN_PARTS
        architecture = name_part(inner, type(part)) if is_open else ""
        yield ConfigBlock(f"{path}{name}.", part, section, section if is_open else root, architecture)
        own = {"model_type": architecture} if named else {}  # a named part has sections as a whole config.json has
        yield from list_blocks(part, own, f"{path}{name}.", section if is_open else root)


def find_section(sizes: Sizes, name: str, stated: Mapping[str, Any], named: str) -> Place:
    """The section of a part called `name`; empty if its keys are at the top level. `named`: the section of a part that
    can be of any model type.
    """
    sections = get_sections(stated.get("model_type"))
    if name == "language" and sections:
        return () if sections.is_flat and sections.section not in stated else (sections.section,)
    return sizes.section.split(".") if sizes.section else (named,) if named else ()


def list_classes(model: Model) -> tuple[str, ...]:
    """The classes of the reference with these parameters, its own first."""
    if not model.reading.head:
        return (model.reading.reference,)
    return (model.sizes.reference.partition(" of ")[0], *model.sizes.equivalent_classes)


def state_sizes(
    model: Model, reference: str, context: int | None
) -> tuple[dict[str, Any], dict[str, list[str]], list[ConfigBlock]]:
    """(a config.json of a class with keys for all sizes, the place of each size that has a key, its blocks)."""
    sizes = model.sizes
    model_type, _ = split_name(str(model.architecture))
    document = {**copy_plain(model.stated or {}), "model_type": model_type}
    document["architectures"] = [reference]
    main = ConfigBlock("", sizes, sizes.section.split(".") if sizes.section else (), ())
    blocks = [main, *list_blocks(sizes, document)]
    language = getattr(sizes, "language", None)
    if language is not None and TIE_KEY in type(language).fields:
        document[TIE_KEY] = language.tie_word_embeddings
        main = next(block for block in blocks if block.path == "language.")
    if context and "n_positions" not in main.sizes.__dict__:
        find_object(document, main.section).setdefault(CONTEXT_KEY, context)
    keys = {path: place for block in blocks for path, place in state_block(document, block)}
    sections = get_sections(model_type)
    if sections and f"language.{TIE_KEY}" in keys and sections.tie_rule != "text":
        keys[f"language.{TIE_KEY}"] = [TIE_KEY]
    for block in blocks:
        configs = find_object(document, block.section), find_object(document, block.root)
        read = {place[-1] for path, place in keys.items() if path.rpartition(".")[0] == block.path.rstrip(".")}
        for at_root, key, value in find_keys(block.sizes, configs, read):
            configs[at_root][key] = value
    return document, keys, blocks


def state_block(document: dict[str, Any], block: ConfigBlock) -> Iterator[tuple[str, list[str]]]:
    """Add the keys of the sizes of a block; (size, place) of each."""
    section = find_object(document, block.section)
    if block.architecture and block.section:
        section["model_type"], _ = split_name(block.architecture)
    inner = inner_configs(type(block.sizes))
    for name, value in block.sizes.__dict__.items():
        spellings = () if name in inner else get_key(type(block.sizes), name).spellings(name)
        if not spellings:
            continue
        key = find_main_key(spellings, document)
        place = key[1:].split(".") if key.startswith("/") else [*block.section, *key.split(".")]
        set_key(document, place, to_json(value))
        yield block.path + name, place


def find_object(document: dict[str, Any], place: Place) -> dict[str, Any]:
    """The object at a place; objects that are missing or null are added."""
    for step in place:
        if document.get(step) is None:
            document[step] = {}
        document = document[step]
    return document


def set_key(document: dict[str, Any], place: Place, value: Any) -> None:
    find_object(document, place[:-1])[place[-1]] = value


def copy_plain(value: Any) -> Any:
    """The same objects and lists, free to be changed."""
    if isinstance(value, Mapping):
        return {key: copy_plain(inner) for key, inner in value.items()}
    return [copy_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value
