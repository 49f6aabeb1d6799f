"""The commands in the groups and the order of `--help`. Their names are `RESERVED` in `paramcount.zoo.names`."""

from __future__ import annotations

import click

from paramcount.errors import ParamcountError, quote

# {heading: {command: (module of paramcount.cli, one line for --help)}}
GROUPS = {
    "Models": {
        "show": ("show", "Show one model: total, components and arithmetic."),
        "compare": ("compare", "Compare models side by side."),
        "diff": ("diff", "Show which sizes and components differ between two models."),
        "explore": ("explore", "Browse, compare and change models on a page in the browser."),
    },
    "Database": {
        "list": ("list_models", "Search, filter and sort the models in the zoo."),
        "sql": ("sql", "Query the zoo with SQL."),
        "cite": ("cite", "Print BibTeX for models, their sources and paramcount."),
        "export": ("export", "Write the zoo to a SQLite, Parquet, CSV, JSON or Excel file."),
    },
    "Resources": {
        "memory": ("memory", "Show the memory for weights and KV cache."),
        "plan": ("plan", "Find GPUs that serve a number of users, and the command that starts them."),
        "flops": ("flops", "Show the FLOPs per token and per prompt."),
        "lora": ("lora", "Show the trainable parameters of an adapter."),
        "training": ("training", "Show the memory that training takes on each GPU."),
    },
    "Design": {
        "sweep": ("sweep", "Count every valid combination of sizes."),
        "size": ("size", "Find configurations that meet a parameter or memory budget."),
    },
    "Inside a model": {
        "explain": ("explain", "Explain each component: formula, numbers, value."),
        "trace": ("trace", "Trace a forward pass: every operation with its shapes."),
        "draw": ("draw", "Draw every matrix of a model to scale."),
        "map": ("draw_map", "Draw every tensor as an area in proportion to its parameters."),
        "report": ("report", "Write an HTML page about one or more models."),
    },
    "Checks": {
        "why": ("why", "Explain what a published number counts or a checkpoint contains."),
        "verify": ("verify", "Check a model against its reference, published figures or a checkpoint."),
        "audit": ("audit", "Check tables of claims about models."),
        "scan": ("scan", "Count every config.json below a directory."),
    },
    "Your own models": {
        "add": ("add", "Add a model to your own zoo."),
        "validate": ("validate", "Check zoo entries."),
    },
    "Reference": {
        "architectures": ("architectures", "List the architectures that paramcount can count."),
        "docs": ("docs", "Read the guides."),
        "help": ("help", "Show help for a command."),
        "schema": ("schema", "Print the JSON Schema of a command's --json output."),
    },
}
COMMANDS = {name: place for group in GROUPS.values() for name, place in group.items()}


OPTIONS, COMMON_OPTIONS = "Options", "Common options"


class Command(click.Command):
    """A command that reports arguments it does not take as a ParamcountError."""

    allow_extra_args = True  # click's own error states them only in its text
    common: frozenset[str] = frozenset()  # names of the options that it shares with other commands

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help of the options under a heading per group; those that commands share come last."""
        groups: dict[str, list[tuple[str, str]]] = {OPTIONS: []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                is_common = param.name in self.common or "--help" in param.opts
                group = COMMON_OPTIONS if is_common else getattr(param, "group", OPTIONS)
                groups.setdefault(group, []).append(record)
        common = groups.pop(COMMON_OPTIONS, [])
        if not groups[OPTIONS] and len(groups) == 1:
            groups = {OPTIONS: common}
        else:
            groups[COMMON_OPTIONS] = common
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = [*args]  # click removes them
        try:
            extra = super().parse_args(ctx, args)
        except click.BadOptionUsage as error:
            error.ctx = error.ctx or ctx  # click leaves it empty
            raise
        if extra and not ctx.resilient_parsing:
            arguments = ", ".join(map(quote, extra[:3])) + (", …" if len(extra) > 3 else "")
            plural = "s" if len(extra) > 1 else ""
            before = words[words.index(extra[0]) - 1] if words[0] != extra[0] else ""
            flag = f"{before} takes no value; " if before.startswith("--") and before != "--" else ""
            raise ParamcountError(f"unexpected argument{plural} {arguments}; {flag}run `{ctx.command_path} --help`")
        return extra
