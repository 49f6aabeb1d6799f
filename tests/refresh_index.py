"""What is where, so that a module is imported when it is needed: architectures, and the vocabulary of declarations.

`python -m tests.refresh_index` writes paramcount/architectures/index.json and keys.json from what the classes of
paramcount/architectures and paramcount/parts state, the columns into the schemas of tables of models, and what
tests/refresh_names.py makes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import refresh_names

if TYPE_CHECKING:
    from paramcount.sizes import Sizes

INDEX = refresh_names.ROOT / "architectures/index.json"
KEYS = refresh_names.ROOT / "architectures/keys.json"
SCHEMAS = [refresh_names.ROOT / f"schemas/{command}.json" for command in ("compare", "list", "scan")]


def list_classes(package: str) -> Iterator[tuple[str, type[Sizes]]]:
    """(module, class) of every class of sizes that a package's modules define."""
    from paramcount.sizes import Sizes

    for path in sorted((refresh_names.ROOT / package).glob("*.py")):
        if path.stem != "__init__":
            module = import_module(f"paramcount.{package}.{path.stem}")
            for cls in vars(module).values():
                if isinstance(cls, type) and issubclass(cls, Sizes) and cls.__module__ == module.__name__:
                    yield path.stem, cls


def list_names(module: str, cls: type[Sizes]) -> tuple[str, ...]:
    """The names of an architecture; none for a class that others extend."""
    own = vars(cls)
    return own.get("model_types") or ((module,) if "reference" in own else ())


def find_types(named: Iterable[tuple[str, type[Sizes]]]) -> dict[str, str]:
    """{class of the reference: its model type}, without those that several model types have.

    A class is the one that it is the `reference` of, a whole rather than a part; a class of a library comes before the
    same name in a publisher's own code, and a type that releases state before one that is found by its keys.
    """
    from paramcount.architectures import split_name

    rows = [(*cls.reference.partition(" of "), name, cls) for name, cls in named]
    library = [(own, name, cls) for own, _, publisher, name, cls in rows if not publisher]
    remote = [(own, name, cls) for own, _, publisher, name, cls in rows if publisher]
    found: dict[str, str] = {}
    for part in (remote, library):
        claims: dict[str, set[str]] = {}
        for own, name, cls in part:
            for other in (own, *(cls.equivalent_classes if cls.is_found_by_class else ())):
                claims.setdefault(other, set()).add(split_name(name)[0])
        unstated = {name for _, name, cls in part if "released_as" in vars(cls)}
        claims = {cls: types - unstated or types for cls, types in claims.items()}
        found |= {cls: next(iter(types)) for cls, types in claims.items() if len(types) == 1}
        wholes_first = sorted(part, key=lambda row: vars(row[2]).get("sections") is None)
        shared = {
            own: name
            for own, name, cls in reversed(wholes_first)
            if len(claims[own]) > 1 and "reference" in vars(cls) and cls.is_found_by_class and not split_name(name)[1]
        }
        found |= shared
    return dict(sorted(found.items()))


def find_released_as(named: Iterable[tuple[str, type[Sizes]]]) -> dict[str, dict[str, str]]:
    """{model type that releases state: {word in the name of their class or code: the model type that they have}}"""
    found: dict[str, dict[str, str]] = {}
    for name, cls in named:
        for stated, words in vars(cls).get("released_as", {}).items():
            found.setdefault(stated, {}).update(dict.fromkeys(words, name))
    return found


def is_section_type(name: str, cls: type[Sizes]) -> bool:
    """Whether a model type of the reference can be the language model of a multimodal config.json."""
    from paramcount.architectures import get_sections

    is_whole = cls.section is None and get_sections(name) is None
    return cls.is_section_type and is_whole and " of " not in cls.reference  # of a publisher's own code


def list_drafts(listed: Iterable[tuple[str, str, type[Sizes]]]) -> dict[str, str]:
    """{class of a draft head: its architecture}: a config.json has the model type of its target."""
    found = {
        own: name
        for name, _, cls in listed
        if cls.is_draft
        for own in (cls.reference.partition(" ")[0], *vars(cls).get("equivalent_classes", ()))
    }
    return dict(sorted(found.items()))


def make_index() -> dict[str, Any]:
    """The index as it has to be."""
    from paramcount.sizes import Tower

    classes = list(list_classes("architectures"))
    listed = [(name, module, cls) for module, cls in classes for name in list_names(module, cls)]
    named = sorted(listed, key=lambda row: row[0])
    towers = [
        (name, module, cls)
        for module, cls in list_classes("parts")
        if issubclass(cls, Tower)
        for name in vars(cls).get("model_types", ())
    ]
    return {
        "architectures": {name: f"{module}.{cls.__name__}" for name, module, cls in named},
        "references": {name: cls.reference for name, _, cls in named},
        "classes": find_types((name, cls) for name, _, cls in listed),
        "released_as": find_released_as((name, cls) for name, _, cls in named),
        "drafts": list_drafts(listed),
        "draft_keys": {key: name for name, _, cls in named if (key := vars(cls).get("draft_key"))},
        "gguf": {name: layouts for name, _, cls in named if (layouts := vars(cls).get("gguf"))},
        "section_types": [name for name, _, cls in named if is_section_type(name, cls)],
        "multimodal": [name for name, _, cls in named if vars(cls).get("sections")],
        "encoders": {name: f"{module}.{cls.__name__}" for name, module, cls in sorted(towers, key=lambda row: row[0])},
        "section_encoders": sorted(name for name, _, cls in towers if vars(cls).get("is_section_type")),
    }


def format_tables(named: dict[str, Any]) -> str:
    """Tables as a file: one line for each of their items."""
    tables = []
    for key, table in named.items():
        pairs = table.items() if isinstance(table, dict) else ((None, value) for value in table)
        lines = [(f"{json.dumps(name)}: " if name is not None else "") + json.dumps(value) for name, value in pairs]
        left, right = "{}" if isinstance(table, dict) else "[]"
        tables.append(f'"{key}": {left}\n' + ",\n".join(lines) + f"\n{right}")
    return "{\n" + ",\n".join(tables) + "\n}\n"


def map_keys() -> dict[str, Any]:
    """{"fields": {config.json key: the fields of architectures that have it}, "encoders": names of their sizes}."""
    from paramcount.architectures import ARCHITECTURES, architecture
    from paramcount.sizes import Tower, get_key, inner_configs

    fields: dict[str, set[str]] = {}
    for cls in {architecture(name) for name in ARCHITECTURES}:
        for field in cls.fields.keys() - inner_configs(cls):
            for key in (field, *get_key(cls, field).spellings(field)):
                fields.setdefault(re.split(r"[./]", key)[-1], set()).add(field)
    towers = [cls for _, cls in list_classes("parts") if issubclass(cls, Tower)]
    pairs = [(cls, field) for cls in towers for field in cls.fields.keys() - inner_configs(cls)]
    names = {
        re.split(r"[./]", key)[-1] for cls, field in pairs for key in (field, *get_key(cls, field).spellings(field))
    }
    return {"fields": {key: sorted(fields[key]) for key in sorted(fields)}, "encoders": sorted(names - fields.keys())}


def format_schema(path: Path) -> str:
    """The schema of a command's JSON, with every column of a table of models."""
    from paramcount.zoo.columns import FIELDS

    types = {"integer": "integer", "number": "number", "flag": "boolean", "text": "string", "date": "string"}
    schema = json.loads(path.read_text(encoding="utf-8"))
    for field in FIELDS:
        schema["properties"]["models"]["items"]["properties"].setdefault(
            field.name, {"type": [types[field.type], "null"]}
        )
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"


def list_files() -> dict[Path, str]:
    """{path: content} of all generated files."""
    schemas = {path: format_schema(path) for path in SCHEMAS}
    return {
        **refresh_names.list_files(),
        INDEX: format_tables(make_index()),
        KEYS: format_tables(map_keys()),
        **schemas,
    }


def main() -> None:
    refresh_names.main()  # first: the index imports classes that need them
    for path, text in list_files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
