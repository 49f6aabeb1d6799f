"""The config.json keys that the settings of an architecture are read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, find_nearest, list_names, quote
from paramcount.flow import is_known
from paramcount.sizes import Sizes, inner_configs
from paramcount.sizes.fields import find_section
from paramcount.sizes.reading import find_part_section, read_all_settings, with_document
from paramcount.sizes.setting_fields import list_settings

# {config.json key: field of a zoo entry that states it}
ENTRY_FIELDS = {"max_position_embeddings": "context_length"}


class Section(Mapping[str, Any]):
    """A section of a config.json that records which of its keys are read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values_by_key = values
        self.asked: dict[str, None] = {}  # also keys that it does not have
        self.sections = {key: Section(value) for key, value in values.items() if isinstance(value, Mapping)}

    def __getitem__(self, key: str) -> Any:
        self.asked[key] = None
        value = self.values_by_key[key]
        return self.sections.get(key, value)

    def __contains__(self, key: object) -> bool:
        self.asked[str(key)] = None
        return key in self.values_by_key

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_key)

    def __len__(self) -> int:
        return len(self.values_by_key)

    def select_read(self) -> dict[str, Any]:
        """The keys that were read, with their values; in sections only those that were read there, if there are any."""
        read = {key: value for key, value in self.values_by_key.items() if key in self.asked}
        inner = {key: self.sections[key].select_read() for key in read if key in self.sections}
        return {key: inner.get(key, value) for key, value in read.items() if inner.get(key) != {}}

    def check_read(self, place: str) -> None:
        """Raises: ParamcountError for a key that no setting is read from."""
        for key in self.values_by_key:
            if key not in self.asked:
                raise ParamcountError(
                    f"unknown key {quote(key)}",
                    where=place,
                    expected=list_names(sorted(self.asked), key) or "no settings: the architecture has none",
                    nearest=find_nearest(key, self.asked),
                )
            if key in self.sections and self.sections[key].asked:
                self.sections[key].check_read(f"{place}.{key}")


class SettingOrigin(NamedTuple):
    """Where the value of a setting comes from."""

    name: str  # with the path to an inner config: "vision.norm_eps"
    kind: str  # read | derived | default: of the reference
    keys: tuple[str, ...]  # those in the config.json, with their section
    value: Any


def list_setting_origins(
    sizes: Sizes, document: Mapping[str, Any], path: str = "", stated: Mapping[str, Any] | None = None, place: str = ""
) -> Iterator[SettingOrigin]:
    """Every known setting, inner configs included.

    Of a part, `document` is its section with what the reference adds to it, `stated` the section in the config.json,
    and `place` the path to it.

    >>> from paramcount.api import load
    >>> [origin[:3] for origin in list_setting_origins(load("gpt2-small").sizes, {"layer_norm_epsilon": 1e-6})][1:3]
    [('activation', 'default', ()), ('norm_eps', 'read', ('layer_norm_epsilon',))]
    """
    stated = document if stated is None else stated
    for name, setting in list_settings(type(sizes)).items():
        inner_place = "" if setting.is_outside else type(sizes).section or ""
        section, stated_section = Section(find_section(document, inner_place)), find_section(stated, inner_place)
        value = sizes.read_setting(setting, section)
        keys = [key for key in section.select_read() if stated_section.get(key) is not None]
        kind = "default" if not keys else "read" if keys[0] in setting.names else "derived"
        prefix = "".join(f"{step}." for step in (place, inner_place) if step)
        if is_known(value):
            yield SettingOrigin(path + name, kind, tuple(prefix + key for key in keys), value)
    for name in inner_configs(type(sizes)):
        if isinstance(part := getattr(sizes, name), Sizes):
            inner = find_part_section(type(sizes), name, document).document
            own_place, own_stated, _ = find_part_section(type(sizes), name, stated)
            full_place = ".".join(filter(None, (place, own_place)))
            yield from list_setting_origins(part, inner, f"{path}{name}.", own_stated or {}, full_place)


def select_entry_settings(sizes: Sizes, document: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a zoo entry: those of a config.json that no other field of the entry states."""
    return {key: value for key, value in select_settings(sizes, document).items() if key not in ENTRY_FIELDS}


def select_settings(sizes: Sizes, document: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a config.json that the settings of these sizes are read from, and those that the reference requires.

    >>> from paramcount.api import load
    >>> document = {"rms_norm_eps": 1e-5, "use_cache": True, "rope_scaling": {"rope_type": "linear", "factor": 2.0}}
    >>> select_settings(load("llama-2-7b").sizes, document)
    {'rms_norm_eps': 1e-05, 'rope_scaling': {'rope_type': 'linear', 'factor': 2.0}}
    """
    section = Section(document)
    read_entry_keys(sizes, section)
    return section.select_read()


def check_setting_keys(sizes: Sizes, settings: Mapping[str, Any]) -> None:
    """Raises: ParamcountError for a key of `settings` that no setting of these sizes is read from, or a wrong value."""
    section = Section(settings)
    try:
        read_entry_keys(sizes, section)
    except ParamcountError as error:
        raise error.add_block("settings") from None
    section.check_read("settings")


def read_entry_keys(sizes: Sizes, section: Section) -> None:
    """Read every key that an entry may state among its settings."""
    read_all_settings(with_document(sizes, section))
    for key in sizes.required_keys:
        *place, name = key.split(".")
        find_section(section, ".".join(place)).get(name)
