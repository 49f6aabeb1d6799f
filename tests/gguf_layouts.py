"""What llama.cpp's converter writes of small models, as tests/data/types has it.

`python -m tests.oracle.gguf_layouts` wrote it with the converter of llama.cpp that llama-cpp-python 0.3.36 carries,
torch 2.13.0 and transformers 5.23.0. An entry holds a config, the class that the converter took it for, options of its
command line, and the tensors as it hands them to the writer, names by shape, outermost axis first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from tests.type_files import load_all


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
    return tuple(
        Entry(
            entry["config"],
            entry["class"],
            entry.get("options", {}),
            entry.get("architecture", ""),
            ungroup_names(entry.get("tensors", {})),
        )
        for entries in load_all("gguf_layouts").values()
        for entry in entries
    )


def group_names(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """Names by shape."""
    found: dict[str, list[str]] = {}
    for name, shape in shapes.items():
        found.setdefault("×".join(map(str, shape)), []).append(name)
    return {shape: " ".join(names) for shape, names in found.items()}


def ungroup_names(groups: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(map(int, shape.split("×"))) for shape, names in groups.items() for name in names.split()}
