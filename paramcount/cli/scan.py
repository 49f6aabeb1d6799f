"""paramcount scan DIR"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from paramcount.cli.options import File, Output, emit, output_options, picking_options
from paramcount.errors import ParamcountError, printable
from paramcount.files import expanded


@click.command("scan", epilog="Example: paramcount scan .")
@click.argument("folder", metavar="DIR", type=File())
@picking_options
@output_options
def command(folder: str, columns: str | None, sort: str | None, output: Output) -> None:
    """Every config.json below a directory, in one table. What cannot be counted is listed at the end, and the exit code is 1."""
    from paramcount.comparing import table
    from paramcount.scanning import PEOPLE, scanned

    place = expanded(folder)
    if not place.is_dir():
        raise ParamcountError("is not a directory", where=printable(folder), accepted="a directory with config.json files below it")
    table([], columns=columns, sort=sort)  # a misspelt column is said before the work
    rows, errors = scanned(place, progress)
    emit(
        lambda chosen: table(rows, columns=columns or (PEOPLE if chosen not in ("csv", "json") else None), sort=sort, full=chosen in ("csv", "json")),
        output,
    )
    for path, problem in errors:
        click.echo(f"not counted: {path}: {problem}", err=True)
    if errors:
        click.echo(f"{len(errors):,} of {len(errors) + len(rows):,} configs could not be counted", err=True)
    sys.exit(1 if errors else 0)


def progress(paths: list[Path]) -> Iterator[Path]:
    """The paths, with a progress bar where stderr is a terminal."""
    if not sys.stderr.isatty():
        yield from paths
        return
    with click.progressbar(paths, label="counting", file=sys.stderr) as bar:
        yield from bar
