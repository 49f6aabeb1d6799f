"""paramcount architectures"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import click

from paramcount.architectures import ARCHITECTURES, architecture, read_index, split_name
from paramcount.cli.options import CommandRequest, define_command, option
from paramcount.counting.count import SCHEMA_VERSION
from paramcount.errors import ParamcountError, count_noun
from paramcount.output.tables import Column, Table
from paramcount.sizes import REQUIRED, Sizes, find_default, get_key, inner_configs
from paramcount.sizes.fields import find_config_class
from paramcount.sizes.setting_fields import list_settings
from paramcount.sizes.values import format_size, to_json

KEY_NAMES = ("name", "keys", "default")
NAMES = ("architecture", "model_types", "reference", "about")


@define_command("architectures", "llama --keys")
@click.argument("name", required=False)
@option("--keys", "List the config.json keys of NAME with their defaults.")
def command(request: CommandRequest, name: str | None, keys: bool) -> None:
    """List the architectures that paramcount can count, with their model types and reference classes.

    The reference is the class in transformers, or in the published modeling code, whose parameters `total` counts.
    With NAME, a model type, show its architecture alone.
    """
    if keys and name is None:
        raise ParamcountError("requires a model type", where="--keys", expected="paramcount architectures NAME --keys")
    request.emit(partial(build_keys, str(name)) if keys else partial(build_table, name))


def build_table(only: str | None, format: str) -> Table:
    """One row per architecture, with all model types that share it. `only`: the model type of a single one."""
    if only is not None:
        architecture(only)
    names_of: dict[str, list[str]] = {}
    for name, place in ARCHITECTURES.items():
        if only is None or place == ARCHITECTURES.get(only):
            names_of.setdefault(place, []).append(name)
    needs_about = format in ("csv", "json")  # it requires the import of every architecture
    rows = []
    for names in sorted(names_of.values(), key=lambda names: names[0].casefold()):
        model_types = list(dict.fromkeys(split_name(name)[0] for name in names))
        rows.append(
            (names[0], model_types, read_index("references")[names[0]], describe(names[0]) if needs_about else "")
        )
    columns = [Column(name, name.replace("_", " "), right=False) for name in NAMES]
    columns[-1] = columns[-1]._replace(only="csv")
    cells = [(name, ", ".join(model_types), reference, about) for name, model_types, reference, about in rows]
    architectures = [dict(zip(NAMES, row, strict=True)) for row in rows]
    n_types = len({split_name(name)[0] for names in names_of.values() for name in names})
    summary = f"{count_noun(len(names_of), 'architecture')} for {count_noun(n_types, 'model type')}"
    return Table(columns, cells, {"schema_version": SCHEMA_VERSION, "architectures": architectures}, below=[summary])


def describe(name: str) -> str:
    """The first line of an architecture's docstring."""
    module = sys.modules[architecture(name).__module__]
    return (module.__doc__ or "").partition("\n")[0]


def build_keys(name: str, format: str) -> Table:
    """One row per size and setting of an architecture: the keys that it is read from, and the default."""
    rows = list(list_keys(architecture(name)))
    columns = [Column(name, name, right=False) for name in KEY_NAMES]
    data = [{"name": path, "keys": keys, **export_default(default)} for path, keys, default in rows]
    cells = [
        (path, ", ".join(keys), format_size(default) if row["missing"] == "default" else row["missing"])
        for (path, keys, default), row in zip(rows, data, strict=True)
    ]
    config_class = find_config_class(architecture(name))
    below = [f"defaults: those of {config_class}" if config_class else "defaults: those of the published code"]
    return Table(columns, cells, {"schema_version": SCHEMA_VERSION, "keys": data}, below=below)


def list_keys(cls: type[Sizes], path: str = "") -> Iterator[tuple[str, list[str], object]]:
    """(size or setting, its keys, the default or what computes it) of an architecture and of its parts of one class."""
    section = f"{cls.section}." if cls.section else ""
    for name, field in cls.fields.items():
        if field.key is None:
            inner = inner_configs(cls)[name]
            if inner.fields:  # rather than any model
                yield from list_keys(inner, f"{path}{name}.")
            continue
        key = get_key(cls, name)
        keys = [spelling[1:] if spelling[0] == "/" else section + spelling for spelling in key.spellings(name)]
        yield path + name, keys, key.absent
    for name, setting in list_settings(cls).items():
        keys = [key if setting.is_outside else section + key for key in setting.names]
        yield path + name, keys, find_default(cls, name, setting.default)


def export_default(value: object) -> dict[str, Any]:
    """The meaning of a missing key, for JSON."""
    if value is REQUIRED or callable(value):
        return {"missing": "required" if value is REQUIRED else "computed", "default": None}
    return {"missing": "default", "default": to_json(value)}
