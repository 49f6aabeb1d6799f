"""Arguments, options, output and messages that commands share."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

import click

from paramcount.errors import (
    LONGEST,
    ParamcountError,
    find_nearest,
    join_words,
    make_printable,
    make_strict_error,
    quote,
)
from paramcount.output.files import choose_format, write_atomically
from paramcount.output.tables import FORMATS, Table, render
from paramcount.output.terminal import get_terminal_width
from paramcount.zoo.names import find_kind, find_shared_entry, is_path, path_exists

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from paramcount.zoo import Model

FILE_WIDTH = 80  # columns of a table in a file, whatever the terminal
F = TypeVar("F", bound=Callable[..., object])


def complete_names(ctx: click.Context, param: click.Parameter | None, incomplete: str) -> list[CompletionItem]:
    """The ids and families that begin with the typed text; if there are none, the shell completes file names."""
    from click.shell_completion import CompletionItem

    import paramcount.zoo as zoo

    names: list[str] = []
    if not is_path(incomplete):
        names = [name for name in (*zoo.list_families(), *zoo.list_ids()) if name.startswith(incomplete[:LONGEST])]
    return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]


# ---- messages


class Messages(NamedTuple):
    """Warnings (the result may not be what the user meant) and notes (harmless)."""

    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class HasVerdict(Protocol):
    """Whether something fits a device."""

    @property
    def verdict(self) -> str: ...


class HasMessages(Protocol):
    """A result with warnings and notes, such as a trace."""

    @property
    def warnings(self) -> Sequence[str]: ...

    @property
    def notes(self) -> Sequence[str]: ...


def list_name_notes(names: Iterable[str]) -> Iterator[str]:
    """Notes about ambiguous names: a directory has the same name, or the zoo entry is another release with the same
    sizes."""
    for name in names:
        if not is_path(name) and path_exists(name) and (kind := find_kind(name)):
            text, file_type = make_printable(name), "directory" if os.path.isdir(name) else "file"
            yield f'using the zoo {kind} "{text}"; for the {file_type}, pass ./{text}'
        if entry := find_shared_entry(name):
            yield f"{make_printable(name)} has the same sizes as {entry}; using the entry of {entry}"


def collect_messages(
    names: Iterable[str],
    models: Sequence[Model],
    *results: HasMessages,
    with_ids: bool = False,
) -> Messages:
    """All warnings and notes that a command prints.

    Args:
        names: The models as the user typed them.
        models: The loaded models.
        results: Other objects with warnings and notes, such as a trace.
        with_ids: Begin the messages of each model with its id.

    Raises: ParamcountError for a warning with --strict.
    """
    warnings, notes = [], [*list_name_notes(names)]
    for model in models:
        if not model.estimate:
            prefix = f"{model.id}: " if with_ids else ""
            warnings += [f"{prefix}{text}" for text in model.reading.warnings]
            notes += [f"{prefix}{text}" for text in model.reading.notes]
    for result in results:
        warnings += result.warnings
        notes += result.notes
    if warnings and click.get_current_context().meta.get("paramcount.strict"):
        raise make_strict_error(warnings)
    return Messages(tuple(warnings), tuple(notes))


def add_messages(data: dict[str, Any], messages: Messages) -> dict[str, Any]:
    """The data of a JSON output with the fields `warnings` and `notes`."""
    fields = {name: dict.fromkeys((*data.get(name, ()), *getattr(messages, name))) for name in ("warnings", "notes")}
    return data | {name: list(texts) for name, texts in fields.items()}


def print_messages(messages: Messages) -> None:
    """Print warnings, then notes, on stderr."""
    for kind, texts in (("warning", messages.warnings), ("note", messages.notes)):
        for text in texts:
            click.echo(f"{kind}: {text}", sys.stderr)


# ---- arguments and options


class FilePath(click.Path):
    """A path that the shell completes. It is not checked here; the code that opens the file reports errors."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)


class Choice(click.Choice):  # type: ignore[type-arg]  # generic from click 8.2 on
    """One of several words. The error for any other word names the nearest one."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices:
            return str(value)
        where = max(param.opts, key=len) if param else ""
        raise ParamcountError(
            f"unknown value {quote(str(value))}",
            where=where,
            expected=join_words(self.choices),
            nearest=find_nearest(value, self.choices),
        )


def models_argument(*, required: bool = True, metavar: str = "MODEL...") -> Callable[[F], F]:
    """One or more models."""
    return click.argument("names", nargs=-1, required=required, metavar=metavar, shell_complete=complete_names)


def model_argument(command: F) -> F:
    """One model."""
    return click.argument("name", metavar="MODEL", shell_complete=complete_names)(command)


def column_options(command: F) -> F:
    """--columns and --sort, for comparisons."""
    for option in (
        click.option("--sort", metavar="COLUMN", help="Sort by COLUMN; prefix with - for descending."),
        click.option("--columns", metavar="A,B,…", help="Select columns by name, heading or config.json key."),
    ):
        command = option(command)
    return command


def estimates_option(command: F) -> F:
    """--estimates, for commands that list models."""
    text = "Include models known only from third-party estimates, marked ~."
    return click.option("--estimates", is_flag=True, help=text)(command)


def download_option(command: F) -> F:
    """--download."""
    text = "Download a missing config.json from the Hugging Face Hub (needs the [hub] extra)."
    return click.option("--download", is_flag=True, help=text)(command)


def set_option(command: F) -> F:
    """--set and --strict."""
    strict_help = "Treat warnings as errors (exit code 2)."
    strict = click.option("--strict", is_flag=True, expose_value=False, callback=store_strict, help=strict_help)
    text = "Change a size or flag, for example n_layers=40; repeatable."
    return click.option("--set", "changes", metavar="SIZE=VALUE", multiple=True, help=text)(strict(command))


def store_strict(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Store --strict for `collect_messages`."""
    ctx.meta["paramcount.strict"] = value


# ---- models


def load_model(name: str, changes: Sequence[str], download: bool = False) -> Model:
    """The model with a name or at a path, changed by --set."""
    from paramcount.loading import load

    return apply_changes(load(name, download=download), changes)


def apply_changes(model: Model, changes: Sequence[str]) -> Model:
    """The model, changed by --set."""
    if not changes:
        return model
    from paramcount.sizes.values import parse_settings
    from paramcount.zoo.what_if import change_sizes

    return change_sizes(model, parse_settings(changes))


def add_changes(table: Table, model: Model) -> Table:
    """The table of a model, with the changes of --set in lines above the table and in the JSON."""
    if model.original is None:
        return table
    from paramcount.zoo.what_if import changes_to_dict, describe_changes

    return table._replace(data=table.data | changes_to_dict(model), above=[*table.above, *describe_changes(model)])


# ---- output


def open_in_browser(path: str) -> None:
    import webbrowser
    from pathlib import Path

    webbrowser.open(Path(path).expanduser().resolve().as_uri())


def write_named(output: str | None, models: Sequence[Model], extension: str, content: str | bytes) -> str:
    """Write a page or a picture to a file, or to stdout for "-", and return the path of the file. If `output` is a
    directory or None, the file is named after the model."""
    if output == "-":
        click.echo(content, nl=False)
        return ""
    if output is None or is_directory(output):
        path = os.path.join(output or "", choose_file_name(models) + extension)
        write_atomically(path, content)
        click.echo(f"note: wrote {make_printable(path)}", sys.stderr)
        return path
    write_atomically(output, content)
    return output


def is_directory(path: str) -> bool:
    """Whether a path names a directory: it ends with a slash, or the directory exists."""
    return path.endswith(("/", os.sep)) or os.path.isdir(os.path.expanduser(path))


def choose_file_name(models: Sequence[Model]) -> str:
    """The file name for models, without extension: the id or the last part of the name, in characters that every file
    system accepts; "report" for several models."""
    if len(models) != 1:
        return "report"
    model = models[0]
    name = model.name if model.reading.origin else model.id
    return re.sub(r"[^A-Za-z0-9_.\-]+", "-", name.rpartition("/")[2])[:80].strip("-.") or "model"


class Output(NamedTuple):
    """Where a table goes, and in which format."""

    format_option: str | None
    flags: tuple[str, ...]
    path: str | None
    color: str = "auto"

    @property
    def format(self) -> str:
        """The format that the options or the file extension select."""
        return choose_format(self.format_option, self.flags, self.path)

    @property
    def is_file(self) -> bool:
        """Whether the table goes to a file rather than to stdout."""
        return self.path not in (None, "-")

    @property
    def has_colour(self) -> bool:
        """Whether to print in colour: on a terminal, unless NO_COLOR is set or --color says otherwise; never in a
        file."""
        if self.is_file or self.color == "never":
            return False
        if self.color == "always":
            return True
        return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return bool(sys.stdout) and sys.stdout.isatty()


def output_options(command: F) -> F:
    """--format and its short forms, -o and --color, passed to the command as `output`. This must be the last decorator
    of options."""

    @wraps(command)
    def with_output(
        *,
        format: str | None,
        flags: tuple[str, ...],
        output: str | None,
        color: str,
        **others: object,
    ) -> object:
        return command(output=Output(format, flags, output, color), **others)

    colour_help = "Colour the output; auto: on a terminal."
    file_help = "Write to FILE; the extension selects the format."
    format_help = f"Select the format: {', '.join(FORMATS)}."
    result = cast(F, with_output)
    for option in (
        click.option("--color", type=Choice(["auto", "always", "never"]), default="auto", help=colour_help),
        click.option("-o", "--output", metavar="FILE", type=FilePath(), help=file_help),
        *(
            click.option(f"--{name}", "flags", flag_value=name, multiple=True, help=f"Short for --format {name}.")
            for name in ("latex", "json", "markdown", "csv")
        ),
        click.option("--format", type=Choice(FORMATS), metavar="FORMAT", help=format_help),
    ):
        result = option(result)
    return result


def exit_with_verdict(fit: HasVerdict | None) -> None:
    """End with the exit code of a fit: 0 if it fits, 1 if it does not, 3 if it is too close to call."""
    from paramcount.costs.devices import DOES_NOT_FIT, FITS, TOO_CLOSE

    sys.exit({FITS: 0, DOES_NOT_FIT: 1, TOO_CLOSE: 3}[fit.verdict] if fit else 0)


def emit(make_table: Callable[[str], Table], output: Output, messages: Messages | None = None) -> None:
    """Render the table that `make_table` returns for the selected format, and write it to stdout or to a file.

    Messages go to stderr; in JSON, to the fields `warnings` and `notes`. A file is written completely or not at all.
    """
    format = output.format
    if messages and format != "json":
        print_messages(messages)
    table = make_table(format)
    if messages and format == "json":
        table = table._replace(data=add_messages(table.data, messages))
    width = FILE_WIDTH if output.is_file else get_terminal_width()
    shortens = is_terminal() and not output.is_file  # a file or another program gets whole names
    text = render(table, format, width, colour=output.has_colour, shortens=shortens)
    if output.is_file:
        write_atomically(str(output.path), text)
    else:
        # without an explicit stream, click would not keep its encoding
        click.echo(text, sys.stdout, nl=False, color=output.has_colour)
