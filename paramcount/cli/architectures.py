"""paramcount architectures"""

from __future__ import annotations

import sys

import click

from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.cli.options import emit, output_options
from paramcount.counting import SCHEMA_VERSION
from paramcount.tables import Column, Table


@click.command("architectures", epilog="Example: paramcount architectures")
@output_options
def command(format: str | None, flags: tuple[str, ...], output: str | None) -> None:
    """What can be counted from a config.json: each architecture, its model types, the reference class that its total belongs to."""
    emit(lambda chosen: table(), format, flags, output)


def table() -> Table:
    """A row for each architecture; model types that share one stand together, first the one that names its file."""
    types: dict[tuple[str, str], list[str]] = {}
    for name, place in ARCHITECTURES.items():
        types.setdefault(place, []).append(name)
    rows = []
    for names in sorted(types.values(), key=lambda names: names[0].casefold()):
        found = architecture(names[0])
        summary = (sys.modules[found.__module__].__doc__ or "").partition("\n")[0]
        rows.append([names[0], ", ".join(dict.fromkeys(name.partition(".")[0] for name in names)), found.reference, summary])
    names = ("architecture", "model_types", "reference", "about")
    columns = [Column(name, name.replace("_", " "), right=False, only="csv" if name == "about" else "") for name in names]
    data = {"schema_version": SCHEMA_VERSION, "architectures": [dict(zip(names, row, strict=True)) | {"model_types": row[1].split(", ")} for row in rows]}
    count = len({name.partition(".")[0] for name in ARCHITECTURES})
    return Table(columns, rows, data, below=[f"{len(rows)} architectures for {count} model types"])
