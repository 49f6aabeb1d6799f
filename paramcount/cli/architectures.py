"""paramcount architectures"""

from __future__ import annotations

import sys

import click

from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.cli.options import Output, emit, output_options
from paramcount.counting.count import SCHEMA_VERSION
from paramcount.huggingface.multimodal import COMPOSITES
from paramcount.output.tables import Column, Table

NAMES = ("architecture", "model_types", "reference", "about")


@click.command("architectures", epilog="Example: paramcount architectures")
@output_options
def command(output: Output) -> None:
    """What can be counted from a config.json: each architecture, its model types, the reference class that its total belongs to."""
    emit(lambda chosen: table(), output)


def table() -> Table:
    """A row for each architecture; model types that share one stand together. Composites of which only the language model is
    declared come last."""
    sharing: dict[tuple[str, str], list[str]] = {}
    for name, place in ARCHITECTURES.items():
        sharing.setdefault(place, []).append(name)
    rows = []
    for names in sorted(sharing.values(), key=lambda names: names[0].casefold()):
        declared = architecture(names[0])
        summary = (sys.modules[declared.__module__].__doc__ or "").partition("\n")[0]
        types = list(dict.fromkeys(name.partition(".")[0] for name in names))
        rows.append((names[0], types, declared.reference, summary))
    alone = [name for name in COMPOSITES if name not in ARCHITECTURES]
    rows += [
        (name, [name], f"the language model alone, {COMPOSITES[name].default_type}", "A composite of which the language model is declared.") for name in alone
    ]
    columns = [Column(name, name.replace("_", " "), right=False, only="csv" if name == "about" else "") for name in NAMES]
    data = {"schema_version": SCHEMA_VERSION, "architectures": [dict(zip(NAMES, row, strict=True)) for row in rows]}
    n_types = len({name.partition(".")[0] for name in ARCHITECTURES})
    below = [f"{len(sharing)} architectures for {n_types} model types, and the language model of {len(alone)} more"]
    return Table(columns, [(first, ", ".join(names), *rest) for first, names, *rest in rows], data, below=below)
