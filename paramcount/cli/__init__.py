"""The command line: each command parses its options, calls the API and renders the result.

One file per command, imported when the command is called, so that each loads only the libraries it needs.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from paramcount.cli.commands import COMMANDS, GROUPS
from paramcount.errors import ConfigWarning, ParamcountError, find_nearest, make_printable
from paramcount.output.terminal import FALLBACK
from paramcount.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Commands(click.Group):
    """Commands, imported when they are called. If the first argument is not a command, it is a model:
    `paramcount NAME...` is short for `show` (one model) or `compare` (several)."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"paramcount.cli.{COMMANDS[name][0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), line) for name, (_, line) in commands.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            args = ["--help"]
        elif not ctx.resilient_parsing and args[0].partition("=")[0] not in (*COMMANDS, "--help", "-h", "--version"):
            args = [choose_command(args), *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ParamcountError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            raise name_option(error.name_options(), command.params if command else []) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from paramcount.cli.options import complete_names

        commands = super().shell_complete(ctx, incomplete)
        names = complete_names(ctx, None, incomplete)
        return [*commands, *(item for item in names if item.type != "file" or not commands)]


def choose_command(args: list[str]) -> str:
    """The command for arguments that do not name one: `show` for one model; `compare` for several models, a family, a
    wildcard or an option that only `compare` has."""
    if len(args) == 1 and not args[0].startswith("-"):
        return choose_for_models(args)
    from paramcount.cli.compare import command as compare
    from paramcount.cli.show import command as show

    options = [option for option in (*show.params, *compare.params) if isinstance(option, click.Option)]
    with_value = {name for option in options if not option.is_flag for name in option.opts}
    words = []
    for previous, argument in zip(["", *args], args):
        if previous not in with_value and (argument == "-" or not argument.startswith("-")):
            words.append(argument)
    show_options = {name for option in show.params for name in option.opts}
    only_compare = {name for option in compare.params for name in option.opts} - show_options
    return "compare" if any(arg.partition("=")[0] in only_compare for arg in args) else choose_for_models(words)


def choose_for_models(words: list[str]) -> str:
    from paramcount.zoo.names import expand_pattern

    if len(words) > 1:
        return "compare"
    try:
        return "show" if not words or expand_pattern(words[0]) is None else "compare"
    except ParamcountError:
        return "compare"


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="paramcount", message="%(prog)s %(version)s", help="Show the version.")
def cli() -> None:
    """Count the parameters of language models exactly, from the config alone, and show the arithmetic.

    \b
    paramcount gpt2-small          one model (short for `paramcount show`)
    paramcount llama qwen --csv    several models (short for `paramcount compare`)
    """


def main(args: list[str] | None = None) -> None:
    """Run the command line.

    Exit codes: 0; 1 if something was checked and does not match; 2 for bad input or a missing extra; 130 for Ctrl-C.
    """
    gc.set_threshold(100_000)  # garbage collection during the imports takes 5 % of the start-up time
    atexit.register(gc.freeze)  # the search for garbage when the interpreter exits takes 15 %
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # the search for plugins takes 10 %
    stdout = sys.stdout
    for stream in (stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=FALLBACK)  # ASCII for "≠" if the terminal's encoding lacks it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConfigWarning)  # commands print them
            code = cli.main(args, prog_name="paramcount", standalone_mode=False)
        if sys.stdout:
            sys.stdout.flush()
    except ParamcountError as error:
        code = fail(str(error))
    except click.ClickException as error:
        code = fail(str(translate_click_error(error)))
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except OSError as error:
        message = f"{make_printable(error.filename or 'stdout')}: {error.strerror}"
        code = 0 if isinstance(error, BrokenPipeError) else fail(message)
        discard_output(1)
    except SystemExit:  # the exit code of a command, or click's after it replaced a closed stdout
        if sys.stdout is stdout:
            raise
        code = 0
        discard_output(1)
    sys.exit(code if isinstance(code, int) else 0)


def translate_click_error(error: click.ClickException) -> ParamcountError:
    """The same error as a ParamcountError: where, what is wrong, what was expected, the nearest option."""
    context: click.Context | None = getattr(error, "ctx", None)
    parameters = context.command.params if context else []
    options = {name: parameter for parameter in parameters for name in parameter.opts}
    command_help = f"`{context.command_path if context else 'paramcount'} --help`"
    match error:
        case click.NoSuchOption(option_name=name):
            nearest = find_nearest(name, [*(option for option in options if option.startswith("-")), "--version"])
            hint = "" if nearest else f"; run {command_help}"
            return ParamcountError(f"unknown option {make_printable(name)}{hint}", nearest=nearest)
        case click.BadOptionUsage(option_name=name):
            option = options.get(name)
            takes_value = isinstance(option, click.Option) and not option.is_flag and not option.count
            return ParamcountError(f"{name} {'requires a' if takes_value else 'takes no'} value")
        case click.MissingParameter(param=click.Parameter() as parameter):
            if isinstance(parameter, click.Option):
                return ParamcountError(f"missing option {max(parameter.opts, key=len)}; run {command_help}")
            name = parameter.human_readable_name.split()[0].rstrip(".")  # "MODEL" of "MODEL..."
            return ParamcountError(f"missing argument {name}; run {command_help}")
        case click.BadParameter(param=click.Parameter() as parameter):
            is_option = isinstance(parameter, click.Option)
            where = max(parameter.opts, key=len) if is_option else parameter.human_readable_name
            return ParamcountError(error.message.rstrip("."), where=where)
    return ParamcountError(f"{error.format_message().rstrip('.')}; run {command_help}")


def name_option(error: ParamcountError, parameters: Sequence[click.Parameter]) -> ParamcountError:
    """The same error with the option that the user typed, if it is about an option's value: --pad 3, not pad = 3."""
    typed = f"--{error.where.replace('_', '-')}" if len(error.where) > 1 else f"-{error.where}"
    for option in parameters:
        if isinstance(option, click.Option) and typed in option.opts:
            if error.found.startswith("= "):
                return error.replace(found=f"{typed} {error.found.removeprefix('= ')}", where="")
            return error.replace(where=typed)
    return error


def discard_output(stream: int) -> None:
    """Discard the buffered output of file descriptor 1 (stdout) or 2 (stderr), so that Python exits without a
    message."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def fail(message: str) -> int:
    """Print an error. The exit code is 2 even if stderr is closed or full."""
    if sys.stderr:
        try:
            print(f"error: {message}", file=sys.stderr, flush=True)
        except OSError:
            discard_output(2)
    return 2
