"""What the operations of a forward pass do and why models have them: sentences that teach, and a paper to read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, NamedTuple

from paramcount.flow import operations
from paramcount.flow.operation import Operation

FILE = Path(__file__).with_name("operations.yaml")
ADDRESS = "https://arxiv.org/abs/"


class Lesson(NamedTuple):
    """What an operation does, and why."""

    key: str  # in the file: the name of a class, and for some of its steps words of their name or note
    what: str
    why: str
    paper: str = ""  # its title
    url: str = ""


@cache
def read_lessons() -> dict[str, Lesson]:
    """{key: lesson} of the whole file."""
    import yaml

    data: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    lessons = {}
    for key, entry in data["operations"].items():
        paper = data["papers"][entry["paper"]] if "paper" in entry else None
        source = (paper["title"], ADDRESS + paper["arxiv"]) if paper else ()
        lessons[key] = Lesson(key, entry["what"], entry["why"], *source)
    return lessons


def find_lesson(operation: str, name: str = "", note: str = "") -> Lesson | None:
    """The lesson of an operation, or of the nearest class that it extends; None if the operation is unknown.

    Args:
        operation: The name of its class.
        name: Of the step in a trace: queries have a lesson of their own among linear layers.
        note: Of the step, which tells a layer norm from an RMS norm.
    """
    lessons = read_lessons()
    for base in list_bases().get(operation, ()):
        if f"{base}: {name}" in lessons:
            return lessons[f"{base}: {name}"]
        for key, lesson in lessons.items():
            of, _, words = key.partition(": ")
            if of == base and " " in words and words in note:
                return lesson
        if base in lessons:
            return lessons[base]
    return None


@cache
def list_bases() -> dict[str, tuple[str, ...]]:
    """{operation: its own name and those of the operations that it extends, nearest first}."""
    return {
        each.__name__: tuple(base.__name__ for base in each.__mro__ if issubclass(base, Operation))
        for each in list_operations()
    }


def list_operations() -> list[type[Operation]]:
    """Every operation of the vocabulary."""
    # A flow loads them when it needs them
    for module in iter_modules(operations.__path__, f"{operations.__name__}."):
        import_module(module.name)
    return list(list_subclasses(Operation))


def list_subclasses(base: type[Operation]) -> Iterator[type[Operation]]:
    for each in base.__subclasses__():
        yield each
        yield from list_subclasses(each)
