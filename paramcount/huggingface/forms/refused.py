"""Files of other tools, which are recognised and refused by name: what each is, and what to pass instead."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paramcount.errors import ParamcountError, make_printable

CONFIG = "a model's config.json"
CONFIG_OF_CHECKPOINT = "the config.json in the same directory; `paramcount PATH` counts a checkpoint"
BASE = "the config.json of the model that it trains"

# [[keys that identify the kind], what it is, what to pass instead]. The first that fits is meant.
FILES = Path(__file__).with_name("other_tools.json")
# (pattern near the beginning of a text that is no JSON, what it is, what to pass instead)
TEXTS = (
    (re.compile(r"^FROM\s+(?P<name>\S+)", re.MULTILINE), "an Ollama Modelfile", "the model that FROM names: {name}"),
    (re.compile(r"--num-layers\s"), "a Megatron script", f"{CONFIG}, with model_type"),
    (re.compile(r"^\[(?:model|job|training|metrics)\]\s*$", re.MULTILINE), "a torchtitan training config (TOML)", BASE),
    (re.compile(r"^(?:import|from)\s+\w", re.MULTILINE), "a Python file", CONFIG),
    (re.compile(r"^#!", re.MULTILINE), "a script", CONFIG),
)
SNIFFED = 1 << 16  # characters
TOP_KEY = re.compile(r"^([A-Za-z_][\w.-]*)\s*:", re.MULTILINE)
ZOO_KEYS = {"architecture", "config", "id", "name", "estimate", "family", "sources"}


def find_text_kind(text: str) -> ParamcountError | None:
    """The error for a text of another tool that is no JSON; None for a broken JSON file, and if none is recognised."""
    if text.lstrip()[:1] in ("", "{"):
        return None
    for pattern, kind, expected in TEXTS:
        if match := pattern.search(text, 0, SNIFFED):
            names = {name: make_printable(value, 60) for name, value in match.groupdict().items()}
            return ParamcountError(f"is {kind}", expected=expected.format(**names) if names else expected)
    return None


def find_yaml_kind(text: str) -> ParamcountError | None:
    """The error for a YAML file of another tool, by its keys at the top level; None if it may be a zoo entry."""
    keys = dict.fromkeys(TOP_KEY.findall(text, 0, SNIFFED))
    if not keys or not ZOO_KEYS.isdisjoint(keys):
        return None
    expected = "a zoo entry with architecture and config, or a config.json"
    return find_other_tool(keys) or ParamcountError("is a YAML file that states no model", expected=expected)


def find_other_tool(document: Mapping[str, Any]) -> ParamcountError | None:
    """The error for the file of another tool; None if no tool is recognised."""
    for keys, kind, expected in json.loads(FILES.read_text(encoding="utf-8")):
        if all(key in document for key in keys):
            return ParamcountError(f"is {kind}", expected=expected)
    return None


def check_is_config(document: Mapping[str, Any]) -> None:
    """Check that a file without `model_type` names a class in `architectures`.

    Raises: ParamcountError that says what kind of file it is instead.
    """
    from paramcount.huggingface.config import get_class_name

    if error := find_other_tool(document):
        raise error
    if get_class_name(document):
        return
    if "auto_map" in document:
        raise ParamcountError(
            "is missing, and auto_map names custom modeling code, which paramcount does not run",
            where="model_type",
            expected="a model type from `paramcount architectures`",
        )
    raise ParamcountError(
        "is missing",
        where="model_type",
        expected="a config.json with model_type, or a zoo entry with architecture and config",
    )
