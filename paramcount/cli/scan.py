"""paramcount scan DIR"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING

import click

from paramcount.cli.options import CommandRequest, FilePath, column_options, define_command, option
from paramcount.errors import ParamcountError, join_place, make_printable
from paramcount.formats.files import expand_home
from paramcount.output.tables import Table

if TYPE_CHECKING:
    from paramcount.views.scan import Outcome, Problem, Scan

MAX_LINES = 20  # printed problems of one kind
MOST_REASONS = 10  # of the errors that --jobs prints
MOST_JOBS = 512


@define_command("scan", ".")
@click.argument("folder", metavar="DIR", type=FilePath())
@column_options
@option("--jobs N", "Use N processes, and print the rate and the most common errors.")
@option("--strict", "Treat warnings as errors (exit code 1).")
def command(
    request: CommandRequest, folder: str, columns: str | None, sort: str | None, jobs: int | None, strict: bool
) -> None:
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
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        raise ParamcountError(f"= {jobs}", where="jobs", expected=f"1 to {MOST_JOBS}")
    build_comparison_table([], columns=columns, sort=sort)  # report a misspelt column before the work
    start = monotonic()
    scan = scan_folder(path, load_path, show_progress, strict=strict, jobs=jobs or 1)
    seconds = monotonic() - start

    def make_table(format: str) -> Table:
        selected = columns or (None if format in ("csv", "json") else TERMINAL_COLUMNS)
        result = build_comparison_table(scan.rows, columns=selected, sort=sort, format=format)
        return result._replace(data=result.data | scan.to_dict())

    request.emit(make_table)
    n_errors, n_unreadable = len(scan.errors), len(scan.unreadable)
    if request.table_format != "json":
        print_problems("warning:", [problem.locate_config() for problem in scan.warnings])
    print_problems("error:", [problem.locate_config() for problem in scan.errors])
    if n_errors:
        n_configs = n_errors + len(scan.rows)
        click.echo(f"error: {n_errors:,} of {n_configs:,} configs cannot be counted", err=True)
    print_problems("error:", scan.unreadable)
    if n_unreadable:
        noun = "directory" if n_unreadable == 1 else "directories"
        click.echo(f"error: {n_unreadable:,} {noun} cannot be read", err=True)
    if jobs is not None:
        print_statistics(scan, seconds)
    print_problems("note:", [item._replace(problem=f"skipped, because it {item.problem}") for item in scan.skipped])
    sys.exit(1 if n_errors or n_unreadable else 0)


def print_statistics(scan: Scan, seconds: float) -> None:
    """Print on stderr the rate of a scan, the share of configs that cannot be counted, and the most common reasons."""
    n_errors = len(scan.errors)
    n_configs = n_errors + len(scan.rows)
    rate = f"{n_configs:,} configs in {seconds:.1f} s ({n_configs / max(seconds, 1e-9):,.0f} per second)"
    click.echo(f"note: {rate}, {n_errors / n_configs:.1%} cannot be counted", err=True)
    for reason, n in scan.reasons.most_common(MOST_REASONS):
        click.echo(f"note: {n:,} × {reason}", err=True)


def print_problems(prefix: str, problems: Sequence[Problem]) -> None:
    """Print the first problems on stderr, one per line, and how many more there are."""
    for path, problem in problems[:MAX_LINES]:
        click.echo(f"{prefix} {join_place(path, problem)}", err=True)
    if (more := len(problems) - MAX_LINES) > 0:
        click.echo(f"{prefix} {more:,} more; --json lists all of them", err=True)


def show_progress(outcomes: Iterable[Outcome], n: int) -> Iterator[Outcome]:
    """The outcomes, whose number is `n`, with a progress bar if stderr is a terminal."""
    if not (sys.stderr and sys.stderr.isatty()):
        yield from outcomes
        return
    with click.progressbar(outcomes, length=n, label="counting", file=sys.stderr) as bar:
        yield from bar
