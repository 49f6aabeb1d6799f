"""Architectures by model type: one class per checkpoint layout with its sizes and its forward pass.

A module is imported when it is first needed: index.json, which `python -m tests.refresh_index` writes, says which
classes there are. An architecture reads like its paper: it combines operations
(`paramcount.flow`) and parts (`paramcount.parts`) and repeats nothing.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paramcount.errors import ParamcountError, find_nearest, make_printable

if TYPE_CHECKING:
    from paramcount.sizes import Sizes
    from paramcount.sizes.sections import Sections

INDEX = Path(__file__).with_name("index.json")


@cache
def read_index(name: str) -> Any:
    """One of the tables in index.json. The others are not decoded: together they take half a megabyte of memory."""
    text = INDEX.read_text(encoding="utf-8")
    start = re.search(rf'^"{name}": (?=.$)', text, re.MULTILINE)
    return json.JSONDecoder().raw_decode(text, start.end())[0] if start else {}


# {model type as in config.json, or "model_type.Class": "module.Class"}
ARCHITECTURES: dict[str, str] = read_index("architectures")


def split_name(name: str) -> tuple[str, str]:
    """(model type, class) of "model_type.Class"; no class if there is none. A model type may have a dot: kosmos-2.5.

    >>> split_name("whisper.WhisperForCausalLM"), split_name("kosmos-2.5"), split_name("RefinedWeb")
    (('whisper', 'WhisperForCausalLM'), ('kosmos-2.5', ''), ('RefinedWeb', ''))
    """
    model_type, _, cls = name.rpartition(".")
    return (model_type, cls) if model_type and cls[:1].isupper() else (name, "")


def architecture(name: object) -> type[Sizes]:
    """The class that declares an architecture.

    Raises: ParamcountError for an unknown one, with the nearest.
    """
    if not isinstance(name, str) or name not in ARCHITECTURES:
        if isinstance(name, str) and (found := _of_another_task(name)):
            return found
        expected = "what `paramcount architectures` lists"
        raise ParamcountError(
            f"unknown architecture {make_printable(name, 60)}",
            expected=expected,
            nearest=find_nearest(name, ARCHITECTURES),
        )
    return _imported(ARCHITECTURES[name])


@cache
def _imported(place: str) -> type[Sizes]:
    module, cls = place.split(".")
    return getattr(import_module(f"paramcount.architectures.{module}"), cls)


@cache
def _of_another_task(name: str) -> type[Sizes] | None:
    """The architecture of "model_type.Class" where the class has the head of another task.

    None where it is not declared.
    """
    model_type, cls = split_name(name)
    if not cls or model_type not in ARCHITECTURES:
        return None
    from paramcount.architectures.task_heads import list_all_heads, with_task_head

    head = list_all_heads(model_type).get(cls)
    return with_task_head(_imported(ARCHITECTURES[head.on or model_type]), cls, head) if head else None


def list_section_types() -> tuple[str, ...]:
    """The model types that the language model of a multimodal config.json may have."""
    return tuple(read_index("section_types"))


def get_sections(model_type: object) -> Sections | None:
    """How the reference reads the sections of a multimodal model; None for other models."""
    return get_own(model_type, "sections")


def get_own(model_type: object, name: str) -> Any:
    """What the class of a model type states itself, rather than a class that it extends; None without such a class."""
    if not isinstance(model_type, str) or model_type not in ARCHITECTURES:
        return None
    return vars(_imported(ARCHITECTURES[model_type])).get(name)
