"""Write a zoo entry as YAML: fields in schema order, one line per source and per figure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from paramcount.formats.strict_yaml import parse_yaml
from paramcount.zoo.entries import Entry, dump_sizes

OPTIONAL = ("reference", "settings", "estimate", "claims", "quantization_config")  # written only if the entry has them
ESTIMATE_LACKS = ("architecture", "context_length", "config", "checked", "release", "published")
# Strings that are written without quotes, unless YAML would read them as something else ("null", "1e5", a date).
PLAIN = re.compile(r"[\w.][\w./+@() \-]*(?<! )")


def format_entry(entry: Entry) -> str:
    """The YAML text of a zoo entry. Reading it gives an equal entry.

    >>> from paramcount import load
    >>> format_entry(load("gpt2-small").entry).splitlines()[:3]
    ['id: gpt2-small', 'name: GPT-2 small', 'family: gpt']
    """
    fields = entry.model_dump()
    fields["config"] = entry.config and dump_sizes(entry.config)
    fields["published"] = [figure.model_dump(exclude_none=True) for figure in entry.published]
    lines: list[str] = []
    for name in Entry.model_fields:
        value = fields[name]
        if (name in OPTIONAL and not value) or (entry.estimate and name in ESTIMATE_LACKS):
            continue
        lines += _format_field(name, value)
    return "\n".join(lines) + "\n"


def _format_field(name: str, value: Any) -> list[str]:
    if isinstance(value, (list, tuple)):
        if not value:
            return [f"{name}: []"]
        return [f"{name}:", *(f"  - {_format_inline(item, quoted=name == 'notes')}" for item in value)]
    if name == "config":
        return ["config:", *_format_sizes(value, "  ")]
    if name == "settings":
        return ["settings:", *(f"  {key}: {_format_inline(inner)}" for key, inner in value.items())]
    return [f"{name}: {_format_inline(value)}"]


def _format_sizes(values: Mapping[str, Any], indent: str) -> list[str]:
    """One line per size; the sizes of an encoder are a block of their own."""
    lines = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += [f"{indent}{key}:", *_format_sizes(value, f"{indent}  ")]
        else:
            lines.append(f"{indent}{key}: {_format_inline(value)}")
    return lines


def _format_inline(value: Any, *, quoted: bool = False) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_format_inline(key)}: {_format_inline(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_format_inline, value)) + "]"
    if isinstance(value, str):
        is_plain = PLAIN.fullmatch(value) and not quoted and parse_yaml(f"key: {value}")["key"] == value
        return value if is_plain else json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return format_float(value)
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def format_float(value: float) -> str:
    """A float that YAML 1.1 reads as a float: with a point, and without a zero before the exponent.

    >>> format_float(1e-06), format_float(0.5), format_float(1e16)
    ('1.0e-6', '0.5', '1.0e+16')
    """
    digits, e, exponent = repr(value).partition("e")
    point = "" if "." in digits else ".0"
    return digits if not e else f"{digits}{point}e{int(exponent):+d}"
