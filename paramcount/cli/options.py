"""What commands share: names with completion, one --format, -o."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from paramcount.errors import LONGEST, make_printable, make_strict_error
from paramcount.output.tables import FORMATS, Table, choose_format, render, terminal_width, write_atomically
from paramcount.zoo.names import find_kind, find_shared_entry, is_path, path_exists

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from paramcount.zoo import Model

WIDTH_OF_A_FILE = 80  # the same file whatever terminal it is made in
F = TypeVar("F", bound=Callable[..., Any])


def complete_names(ctx: click.Context, param: click.Parameter | None, incomplete: str) -> list[CompletionItem]:
    """Ids and families that begin with what was typed; where there is none, the shell's own names of files."""
    from click.shell_completion import CompletionItem

    from paramcount import zoo

    names = [] if is_path(incomplete) else [name for name in (*zoo.list_families(), *zoo.list_ids()) if name.startswith(incomplete[:LONGEST])]
    return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]


class Messages(NamedTuple):
    """Warnings (the result may not be what was meant) and notes (harmless)."""

    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def notes_on_names(words: Iterable[str]) -> Iterator[str]:
    """Notes on how names were understood: a folder of the same name was not read, or the entry is another release of the same sizes."""
    for word in words:
        if not is_path(word) and path_exists(word) and (kind := find_kind(word)):
            name, what = make_printable(word), "folder" if os.path.isdir(word) else "file"
            yield f'using the zoo {kind} "{name}"; for the {what}, pass ./{name}'
        if entry := find_shared_entry(word):
            yield f"{make_printable(word)} has the sizes of {entry}, whose entry this is"


def collect_messages(words: Iterable[str], models: Sequence[Model], *results: Any, with_ids: bool = False) -> Messages:
    """All warnings and notes that a command has to print. `words`: the models as typed; `results`: what else has warnings and notes,
    a trace for example; `with_ids`: begin the messages of each model with its id.

    Raises: ParamcountError for a warning with --strict.
    """
    warnings, notes = [], [*notes_on_names(words)]
    for model in models:
        if not model.estimate:
            start = f"{model.id}: " if with_ids else ""
            warnings += [f"{start}{text}" for text in model.reading.warnings]
            notes += [f"{start}{text}" for text in model.reading.notes]
    for result in results:
        warnings += result.warnings
        notes += result.notes
    if warnings and click.get_current_context().meta.get("paramcount.strict"):
        raise make_strict_error(warnings)
    return Messages(tuple(warnings), tuple(notes))


def with_messages(data: dict[str, Any], messages: Messages) -> dict[str, Any]:
    """The data of a JSON output with the fields `warnings` and `notes`."""
    return data | {"warnings": list(messages.warnings), "notes": list(messages.notes)}


def print_messages(messages: Messages) -> None:
    """Print warnings, then notes, on stderr."""
    for kind, texts in (("warning", messages.warnings), ("note", messages.notes)):
        for text in texts:
            click.echo(f"{kind}: {text}", sys.stderr)


def models_argument(*, required: bool = True, metavar: str = "MODEL...") -> Callable[[F], F]:
    return click.argument("names", nargs=-1, required=required, metavar=metavar, shell_complete=complete_names)


def model_argument(command: F) -> F:
    return click.argument("name", metavar="MODEL", shell_complete=complete_names)(command)


class File(click.Path):
    """A path that is completed as one and not looked at: what is wrong with it, `write_atomically` says."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value


def picking_options(command: F) -> F:
    """--columns and --sort of a comparison."""
    for option in (
        click.option("--sort", metavar="COLUMN", help="Sort by COLUMN; prefix with - for descending."),
        click.option("--columns", metavar="A,B,…", help="Pick columns by name, heading or config.json key."),
    ):
        command = option(command)
    return command


def download_option(command: F) -> F:
    return click.option("--download", is_flag=True, help="Fetch config.json of a Hugging Face id that is nowhere else; needs the [hub] extra.")(command)


def set_option(command: F) -> F:
    """--set of a what-if, and --strict."""
    text = "What if: set a size or flag, such as n_layers=40; repeatable."
    strict = click.option("--strict", is_flag=True, expose_value=False, callback=keep_strict, help="Treat warnings as errors (exit code 2).")
    return click.option("--set", "changes", metavar="SIZE=VALUE", multiple=True, help=text)(strict(command))


def keep_strict(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Keep --strict for `collect_messages`."""
    ctx.meta["paramcount.strict"] = value


def load_changed(name: str, changes: Sequence[str], download: bool = False) -> Model:
    """The model that a word means, with what --set changes."""
    from paramcount.zoo.names import load

    return changed(load(name, download=download), changes)


def changed(model: Model, changes: Sequence[str]) -> Model:
    """A model with what --set changes."""
    if not changes:
        return model
    from paramcount.sizes.values import parse_settings
    from paramcount.zoo.what_if import change_sizes

    return change_sizes(model, parse_settings(changes))


def noted(table: Table, model: Model) -> Table:
    """A table of a model with what --set changed: for people in lines above, and in the JSON."""
    if model.original is None:
        return table
    from paramcount.zoo.what_if import changes_to_dict, describe_changes

    return table._replace(data=table.data | changes_to_dict(model), above=[*table.above, *describe_changes(model)])


def write_named(output: str | None, models: Sequence[Model], ending: str, content: str | bytes) -> None:
    """Write a page or a picture to the file asked for; into a directory, or if none is asked for, to a file that is named after the model."""
    if output == "-":
        click.echo(content, nl=False)
    elif output is None or is_folder(output):
        path = os.path.join(output or "", file_name(models) + ending)
        write_atomically(path, content)
        click.echo(f"note: wrote {make_printable(path)}", sys.stderr)
    else:
        write_atomically(output, content)


def is_folder(path: str) -> bool:
    """Whether a path names a directory: it ends in a slash, or there is one of this name."""
    return path.endswith(("/", os.sep)) or os.path.isdir(os.path.expanduser(path))


def file_name(models: Sequence[Model]) -> str:
    """What a file about models is called: a model's id or the last part of its name, in letters that every file system has; of several
    models "report"."""
    if len(models) != 1:
        return "report"
    last = models[0].name.rpartition("/")[2] if models[0].reading.origin else models[0].id.rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9_.\-]+", "-", last)[:80].strip("-.") or "model"


class Output(NamedTuple):
    """Where a table goes, and in which format."""

    format: str | None
    flags: tuple[str, ...]
    path: str | None
    color: str = "auto"

    @property
    def chosen(self) -> str:
        """The one format asked for."""
        return choose_format(self.format, self.flags, self.path)

    @property
    def coloured(self) -> bool:
        """Whether a table is printed in colour: on a terminal, unless NO_COLOR is set or --color says otherwise; never in a file."""
        if self.path not in (None, "-") or self.color == "never":
            return False
        return self.color == "always" or (on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")


def on_terminal() -> bool:
    return bool(sys.stdout) and sys.stdout.isatty()


def output_options(command: F) -> F:
    """--format and its short forms, -o and --color: together the parameter `output`. Stands below all other options."""

    @wraps(command)
    def gathered(*, format: str | None, flags: tuple[str, ...], output: str | None, color: str, **others: Any) -> Any:
        return command(output=Output(format, flags, output, color), **others)

    made: Any = gathered
    for option in (
        click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour on a terminal; NO_COLOR turns it off."),
        click.option("-o", "--output", "output", metavar="FILE", type=File(), help="Write to FILE; the extension selects the format."),
        click.option("--latex", "flags", flag_value="latex", multiple=True, help="Short for --format latex (booktabs)."),
        click.option("--json", "flags", flag_value="json", multiple=True, help="Short for --format json."),
        click.option("--markdown", "flags", flag_value="markdown", multiple=True, help="Short for --format markdown."),
        click.option("--csv", "flags", flag_value="csv", multiple=True, help="Short for --format csv; formula-like text gets a leading apostrophe."),
        click.option("--format", "format", type=click.Choice(FORMATS), help="Format of the output."),
    ):
        made = option(made)
    return made  # type: ignore[no-any-return]


def emit(make: Callable[[str], Table], output: Output, messages: Messages | None = None) -> None:
    """Render the table that `make` gives for the chosen format, to stdout or whole into a file. Messages go to stderr, in JSON into
    the fields `warnings` and `notes`."""
    chosen = output.chosen
    to_file = output.path not in (None, "-")
    if messages and chosen != "json":
        print_messages(messages)
    table = make(chosen)
    if messages and chosen == "json":
        table = table._replace(data=with_messages(table.data, messages))
    text = render(table, chosen, WIDTH_OF_A_FILE if to_file else terminal_width(), colour=output.coloured)
    if not to_file:
        click.echo(text, sys.stdout, nl=False, color=output.coloured)  # given its stream, click keeps to the stream's encoding
    else:
        write_atomically(str(output.path), text)
