"""paramcount scan DIR"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paramcount.cli.commands import Command
from paramcount.cli.options import FilePath, Output, column_options, emit, output_options
from paramcount.errors import ParamcountError, join_place, make_printable
from paramcount.formats.files import expand_home
from paramcount.output.tables import Table

if TYPE_CHECKING:
    from paramcount.views.scan import Problem

MAX_LINES = 20  # printed problems of one kind


@click.command("scan", cls=Command, epilog="Example: paramcount scan .")
@click.argument("folder", metavar="DIR", type=FilePath())
@column_options
@click.option("--strict", is_flag=True, help="Treat warnings as errors (exit code 1).")
@output_options
def command(folder: str, columns: str | None, sort: str | None, strict: bool, output: Output) -> None:
    """Count every config.json below a directory.

    Configs that cannot be counted and directories that cannot be read are listed at the end; the exit code is then 1.
    Symbolic links to directories, .git and .no_exist are skipped, with a note."""
    from paramcount.loading import load_path
    from paramcount.views.compare import build_comparison_table
    from paramcount.views.scan import EXPECTED, TERMINAL_COLUMNS, scan_folder

    path = expand_home(folder)
    if not folder or not os.path.isdir(path):
        problem = "is not a directory" if folder else "the name of the directory is empty"
        raise ParamcountError(problem, where=make_printable(folder), expected=EXPECTED)
    build_comparison_table([], columns=columns, sort=sort)  # report a misspelt column before the work
    scan = scan_folder(path, load_path, show_progress, strict=strict)

    def make_table(format: str) -> Table:
        selected = columns or (None if format in ("csv", "json") else TERMINAL_COLUMNS)
        result = build_comparison_table(scan.rows, columns=selected, sort=sort, format=format)
        return result._replace(data=result.data | scan.to_dict())

    emit(make_table, output)
    n_errors, n_unreadable = len(scan.errors), len(scan.unreadable)
    if output.format != "json":
        print_problems("warning:", [problem.locate_config() for problem in scan.warnings])
    print_problems("error:", [problem.locate_config() for problem in scan.errors])
    if n_errors:
        n_configs = n_errors + len(scan.rows)
        click.echo(f"error: {n_errors:,} of {n_configs:,} configs cannot be counted", err=True)
    print_problems("error:", scan.unreadable)
    if n_unreadable:
        noun = "directory" if n_unreadable == 1 else "directories"
        click.echo(f"error: {n_unreadable:,} {noun} cannot be read", err=True)
    print_problems("note:", [item._replace(problem=f"skipped, because it {item.problem}") for item in scan.skipped])
    sys.exit(1 if n_errors or n_unreadable else 0)


def print_problems(prefix: str, problems: Sequence[Problem]) -> None:
    """Print the first problems on stderr, one per line, and how many more there are."""
    for path, problem in problems[:MAX_LINES]:
        click.echo(f"{prefix} {join_place(path, problem)}", err=True)
    if (more := len(problems) - MAX_LINES) > 0:
        click.echo(f"{prefix} {more:,} more; --json lists all of them", err=True)


def show_progress(paths: list[Path]) -> Iterator[Path]:
    """The paths, with a progress bar if stderr is a terminal."""
    if not (sys.stderr and sys.stderr.isatty()):
        yield from paths
        return
    with click.progressbar(paths, label="counting", file=sys.stderr) as bar:
        yield from bar
