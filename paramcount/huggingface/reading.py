"""How the sizes of a model came about: which class they are of, and where each was read."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, NamedTuple

from paramcount.sizes import Origin


class Reading(NamedTuple):
    """What became of a config.json: which class was counted, and each key."""

    reference: str  # the class
    head: bool = True  # whether it has the language model's head
    scope: str = "model"  # model | language_model
    not_counted: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # the result may not be what was meant
    notes: tuple[str, ...] = ()  # harmless
    origin: Mapping[str, Origin] = {}  # of each field
    document: Mapping[str, Any] = {}  # the parsed config.json
    used: Set[str] = frozenset()  # its keys that a size was read or derived from, or that were checked
    unread: Mapping[str, Any] = {}
    untraced: tuple[str, ...] = ()  # what the config says of the flow that no field knows, nor any weight depends on
