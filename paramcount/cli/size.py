"""paramcount size --like MODEL"""

from __future__ import annotations

from typing import Any

import click

from paramcount.cli.options import CommandRequest, complete_names, define_command, option
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
@option("--total N", "Find models of N parameters, such as 3B.", type=PARAMETERS)
@option("--active N", "Find models of N active parameters, such as 500M.", type=PARAMETERS)
@option("--within SHARE", "Allow SHARE above or below N.", type=float, default=0.05, show_default=True)
@option("--memory SIZE", "Fit a device with SIZE of memory, such as 24GB.", type=BYTES)
@option("--dtype DTYPE", "Store the weights as DTYPE; requires --memory (default: bf16).")
@option("--context N", "Tokens in the KV cache; requires --memory (default: 8k).", type=TOKENS)
@option("--overhead SIZE", "Assume that a runtime takes SIZE; requires --memory (default: 1GB).", type=BYTES)
@option("--vary A,B,…", "Vary these sizes (default: d_model,n_layers).")
@option("--multiple-of N", "Round dimensions to N.", dest="step", default=128, show_default=True)
@option("--limit N", "Show at most N configurations.", default=10, show_default=True)
@option("--save FILE", "Write the best one to FILE.yaml as a zoo entry.")
def command(
    request: CommandRequest, within: float, vary: str | None, step: int, limit: int, save: str | None, **budget: Any
) -> None:
    """Find the valid configurations nearest to a budget, with the proportions of a model.

    The nearest come first; with --memory alone, the largest. Every configuration meets the budget and is counted
    exactly. The rules for its shape are printed below the table."""
    from paramcount.sweeping.render import build_size_table
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
