"""paramcount sweep MODEL SIZE=VALUES..."""

from __future__ import annotations

import sys

import click

from paramcount.cli.options import MODEL, CommandRequest, Messages, define_command, print_messages
from paramcount.cli.progress import progress_callback
from paramcount.output.files import ANY_EXTENSION, EXTENSIONS, choose_by_extension


@define_command("sweep", "llama-3.1-8b n_layers=16:64:4 'd_ff=4*d_model'", MODEL)
@click.argument("settings", nargs=-1, required=True, metavar="SIZE=VALUES...")
@click.option("--columns", metavar="A,B,…", help="Select counts and sizes (default: total,active).")
@click.option("--invalid", is_flag=True, help="List the invalid combinations instead, with reasons.")
def command(request: CommandRequest, settings: tuple[str, ...], columns: str | None, invalid: bool) -> None:
    """Count every valid combination of sizes.

    VALUES is a range START:STOP:STEP that includes STOP, a list a,b,c, or an expression of other sizes with + - * //
    and parentheses. All other sizes keep their values. Invalid combinations are skipped and counted. CSV, Parquet
    (.parquet) and NumPy files (.npy, .npz) are written in chunks."""
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
    names = DEFAULT_COLUMNS if columns is None else [column for column in columns.split(",") if column.strip()]
    model = request.load()
    sweep = make_sweep(model, parse_axes(settings), names)
    messages = request.collect_messages([model])
    tally = Tally(sweep)
    with progress_callback("counting") as report:
        chunks = tally.read(invalid, report)
        if request.is_file and f".{format}" in WRITERS:
            write_file(str(request.output), chunks, f".{format}")
        elif format == "csv":
            write_csv(sys.stdout, chunks)
        else:
            request.emit(build_sweep_table(sweep, chunks, tally), messages)
            messages = Messages()
    print_messages(messages)
    if tally.invalid and not invalid and format != "json":
        print_messages(Messages(notes=(tally.describe(),)))
