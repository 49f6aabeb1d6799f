"""The command line: each command parses its options, calls the API and renders the result.

One file per command, imported when the command is called, so that each loads only the libraries it needs.
"""

from __future__ import annotations

import gc
import io
import os
import sys
import warnings
from importlib import import_module
from typing import Any

import click

from paramcount import __version__
from paramcount.cli.commands import COMMANDS
from paramcount.errors import ConfigWarning, ParamcountError, find_nearest, make_printable
from paramcount.output.terminal import FALLBACK


class Commands(click.Group):
    """Commands imported when called; a first word that is none is a model: `paramcount NAME...` is short for show or compare."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"paramcount.cli.{COMMANDS[name][0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            args = ["--help"]
        elif not ctx.resilient_parsing and args[0] not in (*COMMANDS, "--help", "-h", "--version"):
            args = [self.implied(args), *args]
        return super().parse_args(ctx, args)

    def implied(self, args: list[str]) -> str:
        """show for one model; compare for several, a family, a wildcard, or where an option is asked for that only compare has."""
        from paramcount.cli.compare import command as compare
        from paramcount.cli.show import command as show
        from paramcount.zoo.names import expand_pattern

        options = [option for command in (show, compare) for option in command.params if isinstance(option, click.Option)]
        with_value = {name for option in options if not option.is_flag for name in option.opts}
        words = [word for before, word in zip(["", *args], args) if before not in with_value and (word == "-" or not word.startswith("-"))]
        only_compare = {name for option in compare.params for name in option.opts} - {name for option in show.params for name in option.opts}
        if len(words) > 1 or any(arg.partition("=")[0] in only_compare for arg in args):
            return "compare"
        try:
            return "show" if not words or expand_pattern(words[0]) is None else "compare"
        except ParamcountError:
            return "compare"

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        from paramcount.cli.options import complete_names

        commands = super().shell_complete(ctx, incomplete)
        return [*commands, *(item for item in complete_names(ctx, None, incomplete) if item.type != "file" or not commands)]


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="paramcount", message="%(prog)s %(version)s")
def cli() -> None:
    """Exact parameter counts of language models, from the config alone, with the arithmetic.

    \b
    paramcount gpt2-small                     one model
    paramcount llama qwen --csv               two families side by side
    """


def main(args: list[str] | None = None) -> None:
    """Run the command line. Exit codes: 0; 1 checked, and it does not match; 2 bad input; 130 Ctrl-C."""
    gc.set_threshold(50_000)  # collecting garbage while importing costs a twentieth of the start
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them costs a tenth of the start
    stdout = sys.stdout
    for stream in (stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=FALLBACK)  # "≠" on a terminal that has none
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConfigWarning)  # commands print them
            code = cli.main(args, prog_name="paramcount", standalone_mode=False)
        if sys.stdout:
            sys.stdout.flush()
    except ParamcountError as error:
        code = fail(str(error))
    except click.NoSuchOption as error:
        nearest = find_nearest(error.option_name, [o for p in (error.ctx.command.params if error.ctx else []) for o in p.opts])
        code = fail(str(ParamcountError(f"no option {error.option_name}", expected="see --help", nearest=nearest)))
    except click.ClickException as error:
        code = fail(make_printable(error.format_message(), 800))
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except OSError as error:
        code = 0 if isinstance(error, BrokenPipeError) else fail(f"{make_printable(error.filename or 'stdout')}: {error.strerror}")
        silence(1)
    except SystemExit:  # a command's own exit code; or click's, which has put stdout away as nobody reads it any more
        if sys.stdout is stdout:
            raise
        code = 0
        silence(1)
    sys.exit(code if isinstance(code, int) else 0)


def silence(stream: int) -> None:
    """What is left to write to 1 (stdout) or 2 (stderr) goes nowhere, so that Python does not complain of it as it leaves."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def fail(message: str) -> int:
    """Print an error. The exit code is 2 even if stderr is closed or full."""
    if sys.stderr:
        try:
            print(f"error: {message}", file=sys.stderr, flush=True)
        except OSError:
            silence(2)
    return 2
