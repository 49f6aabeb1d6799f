"""paramcount lora MODEL"""

from __future__ import annotations

from typing import Any

from paramcount.cli.options import MODEL, Choice, CommandRequest, define_command, option


@define_command("lora", "llama-3.1-8b -r 16 --targets attention", MODEL)
@option("-r,--rank N", "Rank (default: 16); IA³ has none.", dest="r", default=16)
@option(
    "--targets A,B,…", "Adapt these modules: names, attention, mlp, mixer, experts, router or all-linear (default)."
)
@option("--target-parameters A,B,…", "Adapt these parameters: mlp.experts.gate_up_proj, ….", default="")
@option("--target-pattern REGEX", "Adapt the modules whose full names match, instead of targets.")
@option("--exclude-modules A,B,…", "Do not adapt these modules: lm_head, mlp.up_proj, ….", default="")
@option("--exclude-pattern REGEX", "Do not adapt modules whose full names match.")
@option("--layers-to-transform I,J,…", "Adapt only these layers, by index from 0.")
@option("--layers-pattern A,B,…", "Name before the index of --layers-to-transform: layers, h, ….", default="")
@option("--rank-pattern NAME=N", "Rank of the modules whose names end so; may be repeated.", multiple=True)
@option(
    "--method",
    "Kind of adapter (default: lora).",
    type=Choice(["lora", "rslora", "dora", "ia3", "vera"]),
    default="lora",
)
@option("--modules-to-save A,B,…", "Train these modules as a whole: lm_head, ….", default="")
@option(
    "--bias",
    "Also train the biases of adapted layers, or all (default: none).",
    type=Choice(["none", "adapted", "all"]),
    default="none",
)
@option("--dtype DTYPE", "Save the adapter as f32 (default), f16 or bf16.", default="f32")
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
