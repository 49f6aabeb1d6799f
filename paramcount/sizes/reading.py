"""How a config.json was read: the class it describes and the origin of each size."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, NamedTuple

from paramcount.sizes import Origin


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
    untraced: tuple[str, ...] = ()  # settings of the forward pass that no field has
