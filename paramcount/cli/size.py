"""paramcount size --like MODEL"""

from __future__ import annotations

from typing import Any

import click

from paramcount.cli.options import CommandRequest, complete_names, define_command, file_option, number_option
from paramcount.cli.quantities import BYTES, PARAMETERS, TOKENS
from paramcount.errors import ParamcountError

LIKE = click.Option(
    ["--like", "names"],
    metavar="MODEL",
    required=True,
    shell_complete=complete_names,
    help="Keep this model's shape.",
)


@define_command("size", "--like llama-3.1-8b --total 3B", LIKE)
@click.option("--total", type=PARAMETERS, metavar="N", help="Find models of N parameters, such as 3B.")
@click.option("--active", type=PARAMETERS, metavar="N", help="Find models of N active parameters, such as 500M.")
@click.option(
    "--within", type=float, metavar="SHARE", default=0.05, show_default=True, help="Allow SHARE above or below N."
)
@click.option("--memory", type=BYTES, metavar="SIZE", help="Fit a device with SIZE of memory, such as 24GB.")
@click.option("--dtype", metavar="DTYPE", help="Store the weights as DTYPE; requires --memory (default: bf16).")
@click.option("--context", type=TOKENS, metavar="N", help="Tokens in the KV cache; requires --memory (default: 8k).")
@click.option(
    "--overhead",
    type=BYTES,
    metavar="SIZE",
    help="Assume that a runtime takes SIZE; requires --memory (default: 1GB).",
)
@click.option("--vary", metavar="A,B,…", help="Vary these sizes (default: d_model,n_layers).")
@number_option("--multiple-of", "step", default=128, show_default=True, help="Round dimensions to N.")
@number_option("--limit", default=10, show_default=True, help="Show at most N configurations.")
@file_option("--save", help="Write the best one to FILE.yaml as a zoo entry.")
def command(
    request: CommandRequest, within: float, vary: str | None, step: int, limit: int, save: str | None, **budget: Any
) -> None:
    """Find the valid configurations nearest to a budget, with the proportions of a model.

    The nearest come first; with --memory alone, the largest. Every configuration meets the budget and is counted
    exactly. The rules for its shape are printed below the table."""
    from paramcount.sweeping.render_size import build_size_table
    from paramcount.sweeping.saving import check_path, save_candidate
    from paramcount.sweeping.size import ParameterBudget, size_model
    from paramcount.tracing.run import check_length

    for name in ("dtype", "context", "overhead"):
        if budget[name] is None:
            del budget[name]
        elif budget["memory"] is None:
            raise ParamcountError(f"--{name} requires --memory")
    if save:
        check_path(save)  # report a wrong name before the search
    model = request.load()
    names = None if vary is None else [name for name in vary.split(",") if name.strip()]
    sizing = size_model(model, ParameterBudget(within=within, **budget), names, step, limit)
    if save:
        save_candidate(sizing, sizing.candidates[0], save)
    messages = request.collect_messages([model])
    if "context" in budget:
        messages = messages._replace(warnings=(*messages.warnings, *check_length(model, budget["context"])))
    request.emit(build_size_table(sizing), messages)
