"""How a config.json was read: the class it describes, the origin of each size, and its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import cache
from typing import Any, NamedTuple

from paramcount.sizes import Origin, Sizes, inner_configs
from paramcount.sizes.fields import find_default, find_section
from paramcount.sizes.setting_fields import list_settings
from paramcount.sizes.setting_kinds import KEY_KINDS, Kind

LANGUAGE_SECTIONS = ("text_config", "llm_config")
SCALAR_TYPES = {str, int, float, bool, type(None), list}  # faster to check than isinstance(value, Mapping)
DEPTH = 8  # of sections within sections; settings lie at most 4 deep


class Reading(NamedTuple):
    """How a config.json was read: the class that is counted, and how each key was used."""

    reference: str  # the class
    head: bool = True  # whether it has an LM head
    scope: str = "model"  # model | language_model
    not_counted: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # the result may not be what the user meant
    notes: tuple[str, ...] = ()  # harmless
    origin: Mapping[str, Origin] = {}  # of each field
    document: Mapping[str, Any] = {}  # the parsed config.json
    used: Set[str] = frozenset()  # keys that sizes were read or derived from, or that were checked
    unread: Mapping[str, Any] = {}  # {key: value} of the other keys
    context_key: str = ""  # of the unread keys, the one that states the longest context


def with_document(sizes: Sizes, document: Mapping[str, Any] | None) -> Sizes:
    """The same sizes, whose settings are read from a config.json when something asks for them; None: there is none."""
    if document is None:
        return sizes.without_document()
    return keep_documents(sizes.make(sizes.__dict__), document, "")


def keep_documents(sizes: Sizes, document: Mapping[str, Any], place: str) -> Sizes:
    """Let new sizes, and new parts of them, read their settings from a config.json or its section at a place."""
    architecture = type(sizes)
    sizes.keep_document(document, place)
    for name in inner_configs(architecture):
        if isinstance(part := sizes.__dict__[name], Sizes):
            own, _, inner = find_part_section(architecture, name, document)
            path = ".".join(filter(None, (place, own)))
            sizes.__dict__[name] = keep_documents(part.make(part.__dict__), inner, path)
    return sizes


def read_all_settings(sizes: Sizes) -> None:
    """Raises: ParamcountError for a setting of the wrong type or out of range, those of parts included."""
    _ = sizes.settings
    for name in inner_configs(type(sizes)):
        if isinstance(part := sizes.__dict__[name], Sizes):
            read_all_settings(part)


def check_setting_values(sizes: Sizes, document: Mapping[str, Any]) -> None:
    """Raises: ParamcountError for a setting of the wrong type or out of range.

    Reading every setting takes as long as counting the model, so they are read only if a value may be wrong.
    """
    if not has_usual_values(document, list_key_kinds(tuple(list_architectures(sizes)))):
        read_all_settings(sizes)


def list_architectures(sizes: Sizes) -> Iterator[type[Sizes]]:
    """The architectures of a model and of its parts."""
    yield type(sizes)
    for name in inner_configs(type(sizes)):
        if isinstance(part := getattr(sizes, name), Sizes):
            yield from list_architectures(part)


@cache
def list_key_kinds(architectures: tuple[type[Sizes], ...]) -> Mapping[str, tuple[Kind, ...]]:
    """{config.json key: the kinds that a setting of these architectures may ask it for}, whatever its section."""
    kinds = {key: {kind: None} for key, kind in KEY_KINDS.items()}  # dictionaries as ordered sets
    for architecture in architectures:
        for setting in list_settings(architecture).values():
            kind = setting.find_kind(find_default(architecture, setting.name, setting.default))
            own = dict.fromkeys(setting.names, kind) | dict(setting.kinds)
            for path, kind in own.items():
                if kind is not None:
                    kinds.setdefault(path.rpartition(".")[2], {})[kind] = None
    return {key: tuple(found) for key, found in kinds.items()}


def has_usual_values(document: Mapping[str, Any], kinds: Mapping[str, tuple[Kind, ...]], depth: int = DEPTH) -> bool:
    """Whether each value, in sections too, is one that every setting which may read its key accepts."""
    for key, value in document.items():
        for kind in kinds.get(key, ()):
            if not (value is None and kind.takes_null) and not kind.is_valid(value):
                return False
        if type(value) in SCALAR_TYPES or not depth or not isinstance(value, Mapping):
            continue
        if not has_usual_values(value, kinds, depth - 1):
            return False
    return True


class PartSection(NamedTuple):
    """What a config.json says of a part."""

    place: str  # the path to its section; empty for the whole config.json
    stated: Mapping[str, Any] | None  # None if it has no section for it and nothing else counts instead
    document: Mapping[str, Any]  # what its settings are read from, with what the reference adds


def find_part_section(architecture: type[Sizes], name: str, document: Mapping[str, Any]) -> PartSection:
    """The section of a part if it can be any model or is the language model, else the whole config.json."""
    if part := architecture.named_parts.get(name):
        place = part.section or name
        stated = find_section(document, place)
        return PartSection(place, stated, stated or part.default)
    keys = LANGUAGE_SECTIONS if name == "language" else ()
    place = next((key for key in keys if isinstance(document.get(key), Mapping)), "")
    has_own_defaults = name in architecture.absent_sections or name in architecture.added_keys
    own = None if has_own_defaults and not place else document[place] if place else document
    found = architecture.absent_sections.get(name, {}) if own is None else own
    added = {key: value for key, value in architecture.added_keys.get(name, {}).items() if found.get(key) is None}
    return PartSection(place, own, {**found, **added} if added else found)


def get_language_section(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a multimodal config.json with the settings of its language model; all of it if it has no sections."""
    for name in LANGUAGE_SECTIONS:
        if name in document and isinstance(section := document[name], Mapping):
            return section
    return document
