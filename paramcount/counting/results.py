"""What the results of commands have in common: plain data for JSON, and a table for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from operator import attrgetter
from typing import Any, ClassVar

from paramcount.errors import make_printable

SCHEMA_VERSION = 2
MOST_SHOWN = 6  # values of a result at a prompt
LONGEST_VALUE = 60  # characters of one of them


def alias(name: str) -> Any:
    """A property with the value of another one, which had this name before; removed in 0.3."""
    return property(attrgetter(name), doc=f"Deprecated alias of `{name}`; removed in 0.3.")


class JsonResult:
    """A frozen dataclass that people see as a line or a table. Its JSON has some of its fields and properties."""

    shown: ClassVar[tuple[str, ...]] = ()  # values at a prompt; by default the first six
    json_fields: ClassVar[tuple[str, ...]]  # in order
    html_table: ClassVar[str]  # "module:function" that builds the table of the command
    names_options: ClassVar[bool] = False  # whether that table suggests options, or arguments with `in_python`

    def __repr__(self) -> str:
        return describe_result(self, *self.shown)

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        return {"schema_version": SCHEMA_VERSION} | {name: to_plain(getattr(self, name)) for name in self.json_fields}

    def _repr_html_(self) -> str:
        """The table of the command, for notebooks."""
        return render_notebook(self.html_table, self, **({"in_python": True} if self.names_options else {}))


def render_notebook(builder: str, result: object, **options: bool) -> str:
    """The table of a result as HTML. `builder`: "module:function"; `options`: of that function."""
    from paramcount.output.markup_tables import render_html_fragment

    module, _, name = builder.partition(":")
    return render_html_fragment(getattr(import_module(module), name)(result, **options))


def describe_result(result: object, *names: str) -> str:
    """A result in one line for a prompt: its class, and those of its values that are numbers or names.

    `names`: the values that are shown; by default the first six.
    """
    values = result._asdict() if hasattr(result, "_asdict") else vars(result)
    plain = {name: value for name, value in values.items() if isinstance(value, (str, int, float)) and value != ""}
    shown = names or tuple(plain)[:MOST_SHOWN]
    texts = {name: make_printable(repr(getattr(result, name)), LONGEST_VALUE) for name in shown}
    stated = ", ".join(f"{name}={text}" for name, text in texts.items())
    return f"{type(result).__name__}({stated}{', …' if len(values) > len(shown) else ''})"


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
