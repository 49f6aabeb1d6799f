"""paramcount lora MODEL"""

from __future__ import annotations

from typing import Any

import click

from paramcount.cli.options import MODEL, Choice, CommandRequest, define_command, number_option


@define_command("lora", "llama-3.1-8b -r 16 --targets attention", MODEL)
@number_option("-r", "r", default=16, help="Rank (default: 16); IA³ has none.")
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
def command(request: CommandRequest, **options: Any) -> None:
    """Show the trainable parameters of an adapter: LoRA, rsLoRA, DoRA, IA³ or VeRA, by module.

    The numbers equal those of the peft library. For an adapter_config.json, its own options count. all-linear means
    every linear layer except the LM head."""
    from paramcount.costs.adapters.adapters import measure_adapter
    from paramcount.costs.adapters.render import build_adapter_table
    from paramcount.costs.adapters.saved import choose_options

    model = request.load()
    adapter = measure_adapter(model, **choose_options(model, options))
    request.emit_model(build_adapter_table(adapter), model, adapter)
