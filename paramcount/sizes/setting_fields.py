"""Settings of an architecture: what its forward pass needs to know and no parameter depends on.

A setting is read from config.json like a size, with the reference's default. A zoo entry may leave it out: the model is
counted all the same, and a trace names the step without it. Activation, norm epsilon and rotary base are settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

from paramcount.sizes.setting_kinds import CheckedSection, Kind, infer_kind

Config: TypeAlias = Mapping[str, Any]  # a section of a config.json
OF_REFERENCE = object()  # the default of the reference's config class, which is in defaults.json
USUAL_KINDS: Mapping[str, Kind] = {}  # no key of another kind than in KEY_KINDS


class Setting:
    """A class attribute of an architecture. On a config it is the value, or an `Unknown` with its name."""

    def __init__(
        self,
        names: tuple[str, ...],
        default: Any,
        usual: Any = OF_REFERENCE,
        nullable: bool = False,
        at_root: bool = False,
        kind: Kind | None = None,
        kinds: Mapping[str, Kind] = USUAL_KINDS,
        check: Callable[[Config, Mapping[str, Any]], None] | None = None,
    ) -> None:
        self.is_outside = at_root or any(name.startswith("/") for name in names)
        self.names = tuple(name.removeprefix("/") for name in names)
        self.default, self.usual, self.nullable = default, usual, nullable
        self.kind, self.kinds = kind, kinds
        self.check = check  # raises an error for a section and sizes that the reference rejects
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, c: Any, owner: type | None = None) -> Any:
        return self if c is None else c.get_setting(self)

    def find_kind(self, default: Any) -> Kind | None:
        """What its keys may hold, if it has this default."""
        return self.kind or infer_kind(self.names, default)

    def read(self, config: Config, sizes: Any, default: Any, place: str = "") -> Any:
        """Its value in a section of a config.json: of the first key that is there, else the default.

        A null stands for the default unless the setting is `nullable`. `place`: the path to the section, with a dot.

        Raises: ParamcountError for a value of another type or out of range.
        """
        kind = self.find_kind(default)
        for name in self.names:
            value = config.get(name)
            if kind is not None and (value is not None or name in config):
                kind.check(value, place + name)
            if value is not None or (self.nullable and name in config):
                return value
        if not callable(default):
            return default
        section = config if isinstance(config, CheckedSection) else CheckedSection(config, place, self.kinds)
        return default(section, sizes)


def setting(
    *names: str,
    default: Any = OF_REFERENCE,
    usual: Any = OF_REFERENCE,
    nullable: bool = False,
    at_root: bool = False,
    kind: Kind | None = None,
    kinds: Mapping[str, Kind] = USUAL_KINDS,
) -> Any:
    """A setting and its config.json keys; those with a / in front stand at the top level of config.json, whatever
    section the sizes have. `default`: a value, where the reference's config class does not state it, or a function of
    the section and the sizes. `usual`: the value of classes that state none, where subclasses may state one.
    `nullable`: a null in config.json is None instead of the default. `at_root`: the function reads the top level.
    `kind`: what the keys may hold; usually that of the default. `kinds`: the same for keys that the function reads, if
    it is not the one in KEY_KINDS.
    """
    return Setting(names, default, usual, nullable, at_root, kind, kinds)


@cache
def list_settings(architecture: type) -> dict[str, Setting]:
    """The settings of an architecture by name; a subclass replaces those of its bases."""
    found: dict[str, Setting] = {}
    for cls in reversed(architecture.__mro__):
        for name, value in vars(cls).items():
            if isinstance(value, Setting):
                found[name] = value
            else:
                found.pop(name, None)
    return found
