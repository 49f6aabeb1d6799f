"""What the results of commands have in common: plain data for JSON, and a table for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

SCHEMA_VERSION = 2


class JsonResult:
    """A frozen dataclass whose JSON has some of its fields and properties."""

    json_fields: ClassVar[tuple[str, ...]]  # in order
    html_table: ClassVar[str]  # "module:function" that builds the table of the command

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        return {"schema_version": SCHEMA_VERSION} | {name: to_plain(getattr(self, name)) for name in self.json_fields}

    def _repr_html_(self) -> str:
        """The table of the command, for notebooks."""
        from paramcount.output.markup_tables import render_html_fragment

        module, _, name = self.html_table.partition(":")
        return render_html_fragment(getattr(import_module(module), name)(self))


def to_plain(value: Any) -> Any:
    """The value as JSON data: named tuples, dataclasses and mappings become dicts, tuples become lists."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, tuple) and not hasattr(value, "_asdict"):
        return [to_plain(inner) for inner in value]
    if hasattr(value, "_asdict"):
        value = value._asdict()
    fields = value if isinstance(value, Mapping) else getattr(value, "__dict__", None)
    return value if fields is None else {name: to_plain(inner) for name, inner in fields.items()}
