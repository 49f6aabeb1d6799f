"""The command line: each command loads what it names, calls the library and renders. One file per command, loaded when called."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Any

import click

from paramcount import __version__
from paramcount.errors import ParamcountError, near, printable

gc.set_threshold(50_000)  # collecting garbage while importing costs a twentieth of the start
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them costs a tenth of the start

# {command: (module, one line for --help)}
COMMANDS = {
    "compare": ("compare", "Several models side by side."),
    "list": ("list_models", "The models of the zoo."),
    "show": ("show", "One model: total, proof, components, arithmetic."),
    "verify": ("verify", "An entry against its reference and what was published."),
}


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
        if args and not ctx.resilient_parsing and args[0] not in (*COMMANDS, "--help", "-h", "--version"):
            args = [self.implied(ctx, args), *args]
        return super().parse_args(ctx, args)

    def implied(self, ctx: click.Context, args: list[str]) -> str:
        """show for one model, compare for several, a family or a wildcard."""
        from paramcount.names import expand

        compare = self.get_command(ctx, "compare")
        assert compare is not None
        parser = compare.make_parser(click.Context(compare, ignore_unknown_options=True, allow_interspersed_args=True))
        parser.ignore_unknown_options = True
        words = [word for word in parser.parse_args(list(args))[0].get("names", ()) if not word.startswith("--")]
        if len(words) > 1 or not words:
            return "compare" if len(words) > 1 else "show"
        try:
            return "show" if expand(words[0]) is None else "compare"
        except ParamcountError:
            return "compare"

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        from paramcount.cli.options import complete_names

        return [*super().shell_complete(ctx, incomplete), *complete_names(ctx, None, incomplete)]


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
    try:
        code = cli.main(args, prog_name="paramcount", standalone_mode=False)
        sys.stdout.flush()
    except ParamcountError as error:
        code = fail(str(error))
    except click.NoSuchOption as error:
        nearest = near(error.option_name, [o for p in (error.ctx.command.params if error.ctx else []) for o in p.opts])
        code = fail(str(ParamcountError(f"no option {error.option_name}", accepted="see --help", nearest=nearest)))
    except click.ClickException as error:
        code = fail(printable(error.format_message(), 800))
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except BrokenPipeError:  # whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code if isinstance(code, int) else 0)


def fail(message: str) -> int:
    print(f"paramcount: {message}", file=sys.stderr)
    return 2
