"""paramcount scan DIR"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paramcount.cli.options import File, Output, emit, output_options, picking_options
from paramcount.errors import ParamcountError, make_printable
from paramcount.formats.files import expand_home
from paramcount.output.tables import Table

if TYPE_CHECKING:
    from paramcount.views.scan import Problem

MOST_LISTED = 20  # of a kind


@click.command("scan", epilog="Example: paramcount scan .")
@click.argument("folder", metavar="DIR", type=File())
@picking_options
@click.option("--strict", is_flag=True, help="Treat warnings as errors (exit code 1).")
@output_options
def command(folder: str, columns: str | None, sort: str | None, strict: bool, output: Output) -> None:
    """Count every config.json below a directory.

    Configs and directories that cannot be read are listed at the end, and the exit code is 1. Symbolic links to directories, .git and
    .no_exist are skipped and listed too.
    """
    from paramcount.views.compare import table
    from paramcount.views.scan import EXPECTED, PEOPLE, scanned

    place = expand_home(folder)
    if not folder or not os.path.isdir(place):
        problem = "is not a directory" if folder else "the name of the directory is empty"
        raise ParamcountError(problem, where=make_printable(folder), expected=EXPECTED)
    table([], columns=columns, sort=sort)  # a misspelt column is an error before the work
    found = scanned(place, progress, strict=strict)
    rows, errors = found.rows, found.errors

    def compared(chosen: str) -> Table:
        made = table(rows, columns=columns or (None if chosen in ("csv", "json") else PEOPLE), sort=sort, format=chosen)
        return made._replace(data=made.data | found.to_dict())

    emit(compared, output)
    if output.chosen != "json":
        say("warning", found.warnings)
    say("warning", errors)
    if errors:
        click.echo(f"warning: {len(errors):,} of {len(errors) + len(rows):,} configs could not be counted", err=True)
    say("warning", found.unreadable)
    if found.unreadable:
        click.echo(f"warning: {directories(len(found.unreadable))} could not be read", err=True)
    say("note: skipped", found.skipped)
    sys.exit(1 if errors or found.unreadable else 0)


def say(prefix: str, problems: Sequence[Problem]) -> None:
    """A line on stderr for each of the first problems, and how many more there are."""
    for path, problem in problems[:MOST_LISTED]:
        click.echo(f"{prefix}: {path}: {problem}", err=True)
    if (more := len(problems) - MOST_LISTED) > 0:
        click.echo(f"{prefix}: and {more:,} more; --json lists all of them", err=True)


def directories(n: int) -> str:
    return f"{n:,} director{'y' if n == 1 else 'ies'}"


def progress(paths: list[Path]) -> Iterator[Path]:
    """The paths, with a progress bar where stderr is a terminal."""
    if not (sys.stderr and sys.stderr.isatty()):
        yield from paths
        return
    with click.progressbar(paths, label="counting", file=sys.stderr) as bar:
        yield from bar
