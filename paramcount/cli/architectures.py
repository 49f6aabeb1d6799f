"""paramcount architectures"""

from __future__ import annotations

import sys

import click

from paramcount.architectures import ARCHITECTURES, INDEX, architecture, split_name
from paramcount.cli.commands import Command
from paramcount.cli.options import Output, emit, output_options
from paramcount.counting.count import SCHEMA_VERSION
from paramcount.output.tables import Column, Table

NAMES = ("architecture", "model_types", "reference", "about")


@click.command("architectures", cls=Command, epilog="Example: paramcount architectures")
@output_options
def command(output: Output) -> None:
    """List the architectures that paramcount can count, with their model types and reference classes.

    The reference is the class in transformers, or in the published modeling code, whose parameters `total` counts.
    """
    emit(build_table, output)


def build_table(format: str) -> Table:
    """One row per architecture, with all model types that share it."""
    names_of: dict[tuple[str, str], list[str]] = {}
    for name, place in ARCHITECTURES.items():
        names_of.setdefault(place, []).append(name)
    needs_about = format in ("csv", "json")  # it requires the import of every architecture
    rows = []
    for names in sorted(names_of.values(), key=lambda names: names[0].casefold()):
        model_types = list(dict.fromkeys(split_name(name)[0] for name in names))
        rows.append((names[0], model_types, INDEX["references"][names[0]], describe(names[0]) if needs_about else ""))
    columns = [Column(name, name.replace("_", " "), right=False) for name in NAMES]
    columns[-1] = columns[-1]._replace(only="csv")
    cells = [(name, ", ".join(model_types), reference, about) for name, model_types, reference, about in rows]
    architectures = [dict(zip(NAMES, row, strict=True)) for row in rows]
    n_types = len({split_name(name)[0] for name in ARCHITECTURES})
    summary = f"{len(names_of)} architectures for {n_types} model types"
    return Table(columns, cells, {"schema_version": SCHEMA_VERSION, "architectures": architectures}, below=[summary])


def describe(name: str) -> str:
    """The first line of an architecture's docstring."""
    module = sys.modules[architecture(name).__module__]
    return (module.__doc__ or "").partition("\n")[0]
