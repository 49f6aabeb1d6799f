"""paramcount lora MODEL"""

from __future__ import annotations

import click

from paramcount.cli.commands import Command
from paramcount.cli.options import (
    Choice,
    Output,
    add_changes,
    collect_messages,
    download_option,
    emit,
    load_model,
    model_argument,
    output_options,
    set_option,
)


@click.command("lora", cls=Command, epilog="Example: paramcount lora llama-3.1-8b -r 16 --targets attention")
@model_argument
@click.option("-r", "r", type=int, default=16, metavar="N", help="Rank (default: 16); IA³ has none.")
@click.option(
    "--targets",
    metavar="A,B,…",
    help="Adapt these modules: names, attention, mlp, mixer, experts, router or all-linear (default).",
)
@click.option(
    "--target-parameters",
    default="",
    metavar="A,B,…",
    help="Adapt these parameters: mlp.experts.gate_up_proj, ….",
)
@click.option("--target-pattern", metavar="REGEX", help="Adapt the modules whose full names match, instead of targets.")
@click.option(
    "--exclude-modules", default="", metavar="A,B,…", help="Do not adapt these modules: lm_head, mlp.up_proj, …."
)
@click.option("--exclude-pattern", metavar="REGEX", help="Do not adapt modules whose full names match.")
@click.option("--layers-to-transform", metavar="I,J,…", help="Adapt only these layers, by index from 0.")
@click.option(
    "--layers-pattern",
    default="",
    metavar="A,B,…",
    help="Name before the index of --layers-to-transform: layers, h, ….",
)
@click.option(
    "--rank-pattern",
    multiple=True,
    metavar="NAME=N",
    help="Rank of the modules whose names end so; may be repeated.",
)
@click.option(
    "--method",
    type=Choice(["lora", "rslora", "dora", "ia3", "vera"]),
    default="lora",
    help="Kind of adapter (default: lora).",
)
@click.option("--modules-to-save", default="", metavar="A,B,…", help="Train these modules as a whole: lm_head, ….")
@click.option(
    "--bias",
    type=Choice(["none", "adapted", "all"]),
    default="none",
    help="Also train the biases of adapted layers, or all (default: none).",
)
@click.option("--dtype", default="f32", metavar="DTYPE", help="Save the adapter as f32 (default), f16 or bf16.")
@set_option
@download_option
@output_options
def command(
    name: str,
    r: int,
    targets: str | None,
    target_parameters: str,
    target_pattern: str | None,
    exclude_modules: str,
    exclude_pattern: str | None,
    layers_to_transform: str | None,
    layers_pattern: str,
    rank_pattern: tuple[str, ...],
    method: str,
    modules_to_save: str,
    bias: str,
    dtype: str,
    changes: tuple[str, ...],
    download: bool,
    output: Output,
) -> None:
    """Show the trainable parameters of an adapter: LoRA, rsLoRA, DoRA, IA³ or VeRA, by module.

    The numbers equal those of the peft library. all-linear means every linear layer except the LM head."""
    from paramcount.costs.adapters import measure_adapter
    from paramcount.costs.render_adapters import build_adapter_table

    model = load_model(name, changes, download)
    adapter = measure_adapter(
        model,
        r=r,
        targets=targets,
        target_pattern=target_pattern,
        target_parameters=target_parameters,
        exclude_modules=exclude_modules,
        exclude_pattern=exclude_pattern,
        layers_to_transform=layers_to_transform,
        layers_pattern=layers_pattern,
        rank_pattern=rank_pattern,
        method=method,
        modules_to_save=modules_to_save,
        bias=bias,
        dtype=dtype,
    )
    messages = collect_messages([name], [model], adapter)
    emit(lambda format: add_changes(build_adapter_table(adapter), model), output, messages)
