"""One config.json per distinct reader of a setting, and values that no setting should have."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import paramcount as pc
from paramcount.huggingface.config import read_config
from paramcount.sizes import Sizes, inner_configs
from paramcount.sizes.fields import find_default, find_section
from paramcount.sizes.reading import find_part_section
from paramcount.sizes.setting_fields import list_settings
from paramcount.sizes.setting_keys import Section
from tests.model_types import MODEL_TYPES, default_document

ODD_VALUES: tuple[Any, ...] = (
    "10000", "", "silu", "a" * 300, True, False, [], [1], ["a"], [1.5, None], {}, {"a": 1}, None, float("inf"),
    float("-inf"), float("nan"), -1, 0, 1, -0.5, 0.0, 0.5, 1e-300, 1e300, 2**31, 10**30, 10**400,
)  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1e4, "original_max_position_embeddings": 64}
LONG_ROPE = {"rope_type": "longrope", "factor": 2.0, "short_factor": [1.0], "long_factor": [1.0]}
LLAMA3 = {"factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 2.0, "original_max_position_embeddings": 64}
# Keys that are added to a config.json, so that settings which are read together with them are read.
ADDED: tuple[dict[str, Any], ...] = (
    {},
    {"rope_scaling": YARN},
    {"rope_parameters": LONG_ROPE},
    {"rope_scaling": {"rope_type": "llama3", **LLAMA3}},
    {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}},
    {"rope_scaling": {"rope_type": "proportional", "factor": 2.0, "partial_rotary_factor": 0.5}},
    {"use_sliding_window": True},
)  # fmt: skip


class Reader(NamedTuple):
    """A config.json key that a setting is read from, and a config.json in which it is read."""

    name: str  # of the model type, or of a model with remote code
    path: tuple[str, ...]
    added: dict[str, Any]  # keys beside those of `find_document`
    by_function: bool  # whether a function reads the key, rather than the setting itself

    def make_document(self, value: Any, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The config.json with this value. `base`: another one of the model type."""
        document = copy.deepcopy({**(find_document(self.name) if base is None else base), **self.added})
        place = document
        for step in self.path[:-1]:
            place[step] = place.get(step) or {}
            place = place[step]
        place[self.path[-1]] = value
        return document


@cache
def load_remote_models() -> dict[str, Any]:
    """{name: config.json} of models whose code is not part of the reference."""
    models = json.loads((Path(__file__).parent / "data" / "remote_models.json").read_text(encoding="utf-8"))
    return {name: model["config"] for name, model in models.items()}


def find_document(name: str) -> dict[str, Any]:
    """The shortest config.json of a model type, or that of a model with remote code."""
    return default_document(name) if name in MODEL_TYPES else load_remote_models()[name]


def list_keys(sizes: Sizes, document: Mapping[str, Any]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """(what is the same for the same reader, path) of every key that settings are read from."""
    for setting in list_settings(type(sizes)).values():
        place = None if setting.is_outside else type(sizes).section
        section = Section(find_section(document, place))
        sizes.read_setting(setting, section)
        for path in list_asked(section):
            reader = getattr(setting.default, "__code__", None) if path[-1] not in setting.names else None
            default = find_default(type(sizes), setting.name, setting.default)
            kind = setting.find_kind(default)
            of_key = (kind and kind.expected, type(default), setting.nullable)
            yield (setting.name, path, reader or of_key), (*(place.split(".") if place else ()), *path)
    for field in inner_configs(type(sizes)):
        part = getattr(sizes, field)
        if isinstance(part, Sizes):
            inner = find_part_section(type(sizes), field, document).document
            steps = next(((key,) for key, value in document.items() if value is inner), ())
            for reader, path in list_keys(part, inner):
                yield reader, (*steps, *path)


def list_asked(section: Section) -> Iterator[tuple[str, ...]]:
    for key in section.asked:
        if key in section.sections:
            for path in list_asked(section.sections[key]):
                yield key, *path
        if key:
            yield (key,)


@cache
def list_readers() -> tuple[Reader, ...]:
    """Every distinct reader of a key, in the first model type that has it."""
    found: dict[object, Reader] = {}
    for name in (*MODEL_TYPES, *load_remote_models()):
        for added in ADDED:
            document = {**find_document(name), **added}
            try:
                sizes = read_config(document).sizes
            except pc.ParamcountError:
                continue
            for reader, path in list_keys(sizes, document):
                found.setdefault(reader, Reader(name, path, added, isinstance(reader[2], CodeType)))
    return tuple(found.values())
