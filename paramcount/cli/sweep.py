"""paramcount sweep MODEL SIZE=VALUES..."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from paramcount.cli.options import MODEL, CommandRequest, Messages, define_command, option, print_messages
from paramcount.cli.progress import progress_callback
from paramcount.errors import ParamcountError
from paramcount.output.files import ANY_EXTENSION, EXTENSIONS, choose_by_extension

if TYPE_CHECKING:
    from paramcount.sweeping.selecting import SweepSelection
    from paramcount.zoo import Model


@define_command("sweep", "llama-3.1-8b n_layers=16:64:4 'd_ff=4*d_model'", MODEL)
@click.argument("settings", nargs=-1, required=True, metavar="SIZE=VALUES...")
@option("--columns A,B,…", "Select counts and sizes (default: total,active).")
@option("--where CONDITION", "Keep rows for which CONDITION holds: 'total < 9e9'.")
@option("--sort COLUMN", "Sort by COLUMN; prefix with - for descending.")
@option("--invalid", "List the invalid combinations instead, with reasons.")
def command(
    request: CommandRequest,
    settings: tuple[str, ...],
    columns: str | None,
    where: str | None,
    sort: str | None,
    invalid: bool,
) -> None:
    """Count every valid combination of sizes.

    VALUES is a range START:STOP:STEP that includes STOP, a list a,b,c, or an expression of other sizes with + - * //
    and parentheses. All other sizes keep their values. Invalid combinations are skipped and counted. CSV, Parquet
    (.parquet) and NumPy files (.npy, .npz) are written in chunks.

    CONDITION compares counts, components and sizes, as in `paramcount list`."""
    from paramcount.sweeping.axes import parse_axes
    from paramcount.sweeping.columns import DEFAULT_COLUMNS
    from paramcount.sweeping.render import Tally, build_sweep_table
    from paramcount.sweeping.sweep import make_sweep
    from paramcount.sweeping.writers import WRITERS, write_csv, write_file

    if request.is_file and not request.format and not request.flags:
        extensions = EXTENSIONS | {extension: extension.lstrip(".") for extension in WRITERS}
        format = choose_by_extension(str(request.output), extensions, or_else=ANY_EXTENSION)
    else:
        format = request.table_format
    names = list(DEFAULT_COLUMNS) if columns is None else [column for column in columns.split(",") if column.strip()]
    model = request.load()
    selection, needed = make_selection(model, names, where, sort, invalid)
    sweep = make_sweep(model, parse_axes(settings), [*names, *needed])
    selection = replace(selection, hidden=selection.hidden - {*sweep.axes, *sweep.expressions})
    messages = request.collect_messages([model])
    tally = Tally(sweep)
    with progress_callback("counting") as report:
        chunks = selection.apply(tally.read(invalid, report))
        if request.is_file and f".{format}" in WRITERS:
            write_file(str(request.output), chunks, f".{format}")
        elif format == "csv":
            write_csv(sys.stdout, chunks)
        else:
            request.emit(build_sweep_table(sweep, chunks, tally, selection), messages)
            messages = Messages()
    print_messages(messages)
    if tally.invalid and not invalid and format != "json":
        print_messages(Messages(notes=(tally.describe(),)))
    if selection.excluded and format != "json":
        print_messages(Messages(notes=(selection.describe(),)))


def make_selection(
    model: Model, columns: list[str], where: str | None, sort: str | None, invalid: bool
) -> tuple[SweepSelection, list[str]]:
    """The rows to show, and the columns that this needs beyond `columns`.

    Raises: ParamcountError for an invalid condition or column.
    """
    from paramcount.sweeping.columns import find_columns
    from paramcount.sweeping.selecting import SweepSelection, find_sweep_field

    for name, value in (("--where", where), ("--sort", sort)):
        if invalid and value is not None:
            raise ParamcountError(f"{name} cannot be combined with --invalid", expected="one of them")
    matches, needed = None, []
    if where is not None:
        from paramcount.database.filters import parse_filter

        filter = parse_filter(where, [model], find_sweep_field)
        matches, needed = filter.matches, [field.name for field in filter.fields]
    if sort is not None:
        key = find_sweep_field(sort.removeprefix("-"), [model]).name
        needed.append(key)
        sort = f"-{key}" if sort.startswith("-") else key
    hidden = frozenset(needed) - frozenset(find_columns(model, columns))
    return SweepSelection(matches, sort, hidden), needed
