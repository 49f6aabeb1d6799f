"""paramcount size --like MODEL"""

from __future__ import annotations

import click

from paramcount.cli.commands import Command
from paramcount.cli.options import (
    FilePath,
    Output,
    collect_messages,
    complete_names,
    download_option,
    emit,
    load_model,
    output_options,
    set_option,
)
from paramcount.cli.quantities import parse_bytes, parse_parameters, parse_tokens
from paramcount.errors import ParamcountError


@click.command("size", cls=Command, epilog="Example: paramcount size --like llama-3.1-8b --total 3B")
@click.option("--like", metavar="MODEL", required=True, shell_complete=complete_names, help="Keep this model's shape.")
@click.option("--total", metavar="N", help="Find models of N parameters, such as 3B.")
@click.option("--active", metavar="N", help="Find models of N active parameters, such as 500M.")
@click.option(
    "--within", type=float, metavar="SHARE", default=0.05, show_default=True, help="Allow SHARE above or below N."
)
@click.option("--memory", metavar="SIZE", help="Fit a device with SIZE of memory, such as 24GB.")
@click.option("--dtype", metavar="DTYPE", help="Store the weights as DTYPE; requires --memory (default: bf16).")
@click.option("--context", metavar="N", help="Tokens in the KV cache; requires --memory (default: 8k).")
@click.option("--overhead", metavar="SIZE", help="Assume that a runtime takes SIZE; requires --memory (default: 1GB).")
@click.option("--vary", metavar="A,B,…", help="Vary these sizes (default: d_model,n_layers).")
@click.option(
    "--multiple-of", "step", type=int, metavar="N", default=128, show_default=True, help="Round dimensions to N."
)
@click.option("--limit", type=int, metavar="N", default=10, show_default=True, help="Show at most N configurations.")
@click.option("--save", metavar="FILE", type=FilePath(), help="Write the best one to FILE.yaml as a zoo entry.")
@set_option
@download_option
@output_options
def command(
    like: str,
    total: str | None,
    active: str | None,
    within: float,
    memory: str | None,
    dtype: str | None,
    context: str | None,
    overhead: str | None,
    vary: str | None,
    step: int,
    limit: int,
    save: str | None,
    changes: tuple[str, ...],
    download: bool,
    output: Output,
) -> None:
    """Find the valid configurations nearest to a budget, with the proportions of a model.

    The nearest come first; with --memory alone, the largest. Every configuration meets the budget and is counted
    exactly. The rules for its shape are printed below the table."""
    from paramcount.sweeping.render_size import build_size_table
    from paramcount.sweeping.saving import check_path, save_candidate
    from paramcount.sweeping.size import OVERHEAD, ParameterBudget, size_model

    for option, value in {"--dtype": dtype, "--context": context, "--overhead": overhead}.items():
        if value is not None and memory is None:
            raise ParamcountError(f"{option} requires --memory")
    if save:
        check_path(save)  # report a wrong name before the search
    budget = ParameterBudget(
        total=None if total is None else parse_parameters(total, where="--total"),
        active=None if active is None else parse_parameters(active, where="--active"),
        within=within,
        memory=None if memory is None else parse_bytes(memory, where="--memory"),
        dtype=dtype or "bf16",
        context=None if context is None else parse_tokens(context, where="--context"),
        overhead=OVERHEAD if overhead is None else parse_bytes(overhead, where="--overhead"),
    )
    model = load_model(like, changes, download)
    names = None if vary is None else [name for name in vary.split(",") if name.strip()]
    sizing = size_model(model, budget, names, step, limit)
    if save:
        save_candidate(sizing, sizing.candidates[0], save)
    emit(lambda _: build_size_table(sizing), output, collect_messages([like], [model]))
