"""The JSON Schema of a zoo entry, made from the pydantic models: for editors, which complete and check YAML with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any, get_args

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from paramcount.architectures import ARCHITECTURES, architecture, split_name
from paramcount.architectures.encoders import ENCODERS
from paramcount.architectures.task_heads import list_all_heads
from paramcount.sizes import Sizes, Tower, inner_configs
from paramcount.sizes.fields import Field
from paramcount.zoo.entries import Entry

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def make_entry_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a YAML file below configs/. The sizes in `config` depend on `architecture`.

    >>> schema = make_entry_schema()
    >>> schema["$defs"]["GPT2"]["required"][:3]
    ['vocab_size', 'n_positions', 'd_model']
    """
    schema = Entry.model_json_schema()
    definitions: dict[str, Any] = {
        name: drop_titles(part) for name, part in schema.pop("$defs").items() if name != "Sizes"
    }
    names = group_names((name, architecture(name)) for name in ARCHITECTURES)
    for cls in names:
        add_definition(definitions, cls)
    properties = drop_titles(schema["properties"])
    properties["architecture"] = {"enum": sorted([*ARCHITECTURES, *list_other_heads()])}
    properties["config"] = {"type": "object"}
    return {
        "$schema": DIALECT,
        "title": "paramcount zoo entry",
        "description": "One model: its sizes, where they come from, and its published figures.",
        "type": "object",
        "properties": properties,
        "required": schema["required"],
        "additionalProperties": False,
        "allOf": [select_by_name(spellings, {"config": refer_to(cls)}) for cls, spellings in names.items()],
        "$defs": dict(sorted(definitions.items())),
    }


def format_entry_schema() -> str:
    """The schema as a file: one line per definition and per architecture."""
    schema = make_entry_schema()
    parts = []
    for key, value in schema.items():
        if key in ("$defs", "properties"):
            lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(part)}" for name, part in value.items())
            parts.append(f'  "{key}": {{\n{lines}\n  }}')
        elif key == "allOf":
            lines = ",\n".join(f"    {json.dumps(part)}" for part in value)
            parts.append(f'  "{key}": [\n{lines}\n  ]')
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def list_other_heads() -> Iterator[str]:
    """The architectures of classes with the head of another task. Their `config` is checked by paramcount only."""
    names = (name for name in ARCHITECTURES if not split_name(name)[1])
    return (f"{name}.{cls}" for name in names for cls in list_all_heads(name))


def group_names(named: Iterable[tuple[str, type[Sizes]]]) -> dict[type[Sizes], list[str]]:
    """{class: the model types that it declares}"""
    names: dict[type[Sizes], list[str]] = {}
    for name, cls in named:
        names.setdefault(cls, []).append(name)
    return names


def select_by_name(names: list[str], properties: dict[str, Any]) -> dict[str, Any]:
    """The condition: if `architecture` is one of the names, then these properties apply."""
    condition = {"properties": {"architecture": {"enum": sorted(names)}}, "required": ["architecture"]}
    return {"if": condition, "then": {"properties": properties}}


def refer_to(cls: type[Sizes]) -> dict[str, str]:
    return {"$ref": f"#/$defs/{cls.__name__}"}


def add_definition(definitions: dict[str, Any], cls: type[Sizes]) -> None:
    """Add the sizes of a class, and of the parts that it has."""
    if cls.__name__ in definitions:
        return
    inner = inner_configs(cls)
    definitions[cls.__name__] = {}  # reserves the name
    definitions[cls.__name__] = {
        "type": "object",
        "properties": {
            name: describe_part(definitions, field, inner[name]) if name in inner else describe_size(field.annotation)
            for name, field in cls.fields.items()
        },
        "required": [name for name, field in cls.fields.items() if field.is_required],
        "additionalProperties": False,
    }


@cache
def describe_size(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a kind of size. Thousands of fields have few kinds."""
    field = FieldInfo.from_annotation(kind)
    annotation: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    found: dict[str, Any] = drop_titles(TypeAdapter(annotation).json_schema())
    return found


def describe_part(definitions: dict[str, Any], field: Field, kind: type[Sizes]) -> dict[str, Any]:
    """The block of a part: the sizes of one class, or of any language model or vision encoder, which it names."""
    if kind in (Sizes, Tower):
        names = ARCHITECTURES if kind is Sizes else ENCODERS
        named = {"architecture": {"enum": sorted(names)}}
        part: dict[str, Any] = {"type": "object", "properties": named, "required": ["architecture"]}
    else:
        add_definition(definitions, kind)
        part = dict(refer_to(kind))
    return {"anyOf": [part, {"type": "null"}]} if type(None) in get_args(field.annotation) else part


def drop_titles(node: Any) -> Any:
    """A schema without the titles that pydantic makes of field names."""
    if isinstance(node, dict):
        return {key: drop_titles(value) for key, value in node.items() if key != "title" or not isinstance(value, str)}
    return [drop_titles(value) for value in node] if isinstance(node, list) else node
