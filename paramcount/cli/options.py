"""Arguments, options, output and messages that commands share."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import click

from paramcount.cli.commands import OPTIONS, Command
from paramcount.cli.quantities import INTEGER
from paramcount.errors import (
    LONGEST,
    ParamcountError,
    find_nearest,
    join_words,
    make_printable,
    make_strict_error,
    quote,
)
from paramcount.output.files import choose_by_extension, choose_format, write_atomically
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


MODEL = click.Argument(["names"], metavar="MODEL", shell_complete=complete_names)


def make_models_argument(metavar: str = "MODEL...", *, required: bool = True) -> click.Argument:
    return click.Argument(["names"], nargs=-1, required=required, metavar=metavar, shell_complete=complete_names)


# {what an option takes, as --help names it: its type}; anything else is text
TYPES: Mapping[str, Any] = {"N": INTEGER, **dict.fromkeys(("FILE", "DIR", "PATH"), FilePath())}


class DeclaredOption(click.Option):
    """An option as --help shows it: "-o,--output FILE", or "--full", a flag; then the parameter, if its name is
    another one."""

    def __init__(self, declarations: Sequence[str], group: str = OPTIONS, **others: Any) -> None:
        names, _, metavar = declarations[0].partition(" ")
        if metavar:
            others = {"metavar": metavar, "type": TYPES.get(metavar)} | others
        elif "/" not in names and "type" not in others:
            others["is_flag"] = True
        super().__init__([*names.split(","), *declarations[1:]], **others)
        self.group = group  # its heading in --help


def option(declaration: str, help: str, *, dest: str = "", **others: Any) -> Callable[[F], F]:
    """The decorator for a `DeclaredOption`. `dest`: the parameter, if its name is another one."""
    return click.option(declaration, *([dest] if dest else []), cls=DeclaredOption, help=help, **others)


def column_options(command: F) -> F:
    """--columns and --sort, for comparisons."""
    sort = option("--sort COLUMN", "Sort by COLUMN; prefix with - for descending.")
    return option("--columns A,B,…", "Select columns by name, heading or config.json key.")(sort(command))


estimates_option = option("--estimates", "Include models known only from third-party estimates, marked ~.")
DOWNLOAD = DeclaredOption(["--download"], help="Download a missing config.json from the Hub (needs the [hub] extra).")
MODEL_OPTIONS = [
    DeclaredOption(
        ["--set SIZE=VALUE", "changes"], multiple=True, help="Change a size or flag, such as n_layers=40; repeatable."
    ),
    DeclaredOption(["--strict"], help="Treat warnings as errors (exit code 2)."),
    DOWNLOAD,
    DeclaredOption(["--base MODEL"], help="Base of an adapter_config.json, if its own name is not known."),
]
SHORT_FORMATS = ("csv", "markdown", "json", "latex")
FORMAT_HELP = f"Select the format: {', '.join(FORMATS)}; short: {', '.join(f'--{name}' for name in SHORT_FORMATS)}."
COLOUR_HELP = "Colour the output: auto (on a terminal), always or never."
OUTPUT_OPTIONS = [
    DeclaredOption(["--format FORMAT"], type=Choice(FORMATS), help=FORMAT_HELP),
    *(click.Option([f"--{name}", "flags"], flag_value=name, multiple=True, hidden=True) for name in SHORT_FORMATS),
    DeclaredOption(["-o,--output FILE"], help="Write to FILE; its extension selects the format."),
    DeclaredOption(["--color WHEN"], type=Choice(["auto", "always", "never"]), default="auto", help=COLOUR_HELP),
]


def define_command(
    name: str, example: str, argument: click.Parameter | None = None, *, prints_table: bool = True
) -> Callable[[Callable[..., None]], Command]:
    """A decorator for a command with the options that commands share; its function gets them as a `CommandRequest`, in
    front of its own parameters. `argument`: the models that it reads."""
    shared = [*([argument, *MODEL_OPTIONS] if argument else []), *(OUTPUT_OPTIONS if prints_table else [])]

    def decorate(function: Callable[..., None]) -> Command:
        @wraps(function)
        def callback(**options: Any) -> None:
            request = CommandRequest(**{name: options.pop(name) for name in {str(option.name) for option in shared}})
            function(request, **options)

        command = click.command(name, cls=Command, epilog=f"Example: paramcount {name} {example}")(callback)
        first = 1 if argument else 0
        command.params = [*shared[:first], *command.params, *shared[first:]]
        command.common = frozenset(str(option.name) for option in shared[first:])
        return command

    return decorate


class CommandRequest(NamedTuple):
    """What the options that commands share ask for: which models, and where a table goes in which format."""

    names: str | tuple[str, ...] = ()  # of one model, or of several
    changes: tuple[str, ...] = ()
    strict: bool = False
    download: bool = False
    base: str | None = None
    format: str | None = None
    flags: tuple[str, ...] = ()
    output: str | None = None
    color: str = "auto"

    def load(self) -> Model:
        """The model, changed by --set."""
        from paramcount.loading import load

        return apply_changes(load(self.names, download=self.download, base=self.base), self.changes)

    def select(self, *, estimates: bool = False) -> list[Model]:
        """All models, those of families and wildcards included, changed by --set."""
        from paramcount.loading import select_models

        models = select_models(self.names, estimates=estimates, download=self.download, base=self.base)
        return [apply_changes(model, self.changes) for model in models]

    def collect_messages(self, models: Iterable[Model], *results: HasMessages) -> Messages:
        """All warnings and notes about models, each with the id of its model if there may be several, and about
        results, such as a trace.

        Raises: ParamcountError for a warning with --strict.
        """
        is_single = isinstance(self.names, str)
        warnings, notes = [], [*list_name_notes([self.names] if isinstance(self.names, str) else self.names)]
        for model in models:
            if not model.estimate:
                prefix = "" if is_single else f"{model.id}: "
                warnings += [f"{prefix}{text}" for text in model.reading.warnings]
                notes += [f"{prefix}{text}" for text in model.reading.notes]
        for result in results:
            warnings += result.warnings
            notes += result.notes
        if warnings and self.strict:
            raise make_strict_error(warnings)
        return Messages(tuple(warnings), tuple(notes))

    @property
    def table_format(self) -> str:
        """The format that the options or the file extension select."""
        return choose_format(self.format, self.flags, self.output)

    @property
    def is_file(self) -> bool:
        return self.output not in (None, "-")

    @property
    def has_colour(self) -> bool:
        """Whether to print in colour: on a terminal, unless NO_COLOR is set or --color says otherwise; never in a
        file."""
        if self.is_file or self.color != "auto":
            return self.color == "always" and not self.is_file
        return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def emit(self, table: Table | Callable[[str], Table], messages: Messages | None = None) -> None:
        """Render a table, or the one that a function returns for the selected format, to stdout or to a file. Messages
        go to stderr; in JSON, to the fields `warnings` and `notes`. A file is written whole or not at all."""
        format = self.table_format
        if messages and format != "json":
            print_messages(messages)
        table = table(format) if callable(table) else table
        if messages and format == "json":
            fields = {
                name: list(dict.fromkeys((*table.data.get(name, ()), *texts)))
                for name, texts in messages._asdict().items()
            }
            table = table._replace(data=table.data | fields)
        width = FILE_WIDTH if self.is_file else get_terminal_width()
        shortens = is_terminal() and not self.is_file  # a file or another program gets whole names
        text = render(table, format, width, colour=self.has_colour, shortens=shortens)
        if self.is_file:
            write_atomically(str(self.output), text)
        else:
            # without an explicit stream, click would not keep its encoding
            click.echo(text, sys.stdout, nl=False, color=self.has_colour)

    def emit_model(self, table: Table, model: Model, *results: HasMessages) -> None:
        """Emit the table of a model with its changes, its messages and those of results."""
        self.emit(add_changes(table, model), self.collect_messages([model], *results))


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


def is_terminal() -> bool:
    return bool(sys.stdout) and sys.stdout.isatty()


# ---- files


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


def write_picture(
    request: CommandRequest, output: str | None, endings: Mapping[str, str], draw: Callable[[Model, str], str | bytes]
) -> None:
    """Draw the model of a request in the format that the name of a file selects, by default SVG, and write it."""
    is_named = output is not None and output != "-" and not is_directory(output)
    format = choose_by_extension(str(output), endings) if is_named else "svg"
    model = request.load()
    print_messages(request.collect_messages([model]))
    write_named(output, [model], ".svg", draw(model, format))


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


def exit_with_verdict(verdict: str) -> None:
    """End with the exit code of a verdict: 0 if it fits or for "", 1 if it does not, 3 if it is too close to call."""
    from paramcount.costs.devices import DOES_NOT_FIT, FITS, TOO_CLOSE

    sys.exit({"": 0, FITS: 0, DOES_NOT_FIT: 1, TOO_CLOSE: 3}[verdict])
