"""What llama.cpp's converter writes of small models: tests/data/gguf_layouts.json.

`python -m tests.oracle.gguf_layouts` wrote it with the converter of llama.cpp that llama-cpp-python 0.3.36 carries,
torch 2.13.0 and transformers 5.23.0. An entry holds a config, the class that the converter took it for, options of its
command line, and the tensors as it hands them to the writer, names by shape, outermost axis first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parent / "data" / "gguf_layouts.json"


class Entry(NamedTuple):
    config: dict[str, Any]
    cls: str
    options: dict[str, Any]
    architecture: str  # as general.architecture says
    tensors: dict[str, tuple[int, ...]]

    @property
    def id(self) -> str:
        return "-".join((self.config["model_type"], self.architecture, *self.options))


@cache
def load_entries() -> tuple[Entry, ...]:
    found = json.loads(FILE.read_text(encoding="utf-8"))
    return tuple(
        Entry(
            entry["config"],
            entry["class"],
            entry.get("options", {}),
            entry.get("architecture", ""),
            ungroup_names(entry.get("tensors", {})),
        )
        for entry in found
    )


def group_names(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """Names by shape."""
    found: dict[str, list[str]] = {}
    for name, shape in shapes.items():
        found.setdefault("×".join(map(str, shape)), []).append(name)
    return {shape: " ".join(names) for shape, names in found.items()}


def ungroup_names(groups: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(map(int, shape.split("×"))) for shape, names in groups.items() for name in names.split()}
