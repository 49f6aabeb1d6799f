"""paramcount training MODEL"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from paramcount.cli.commands import GroupedOption
from paramcount.cli.options import MODEL, CommandRequest, define_command, exit_with_verdict, number_option
from paramcount.cli.quantities import BYTES, INTEGER, OVERHEAD, TOKENS
from paramcount.errors import ParamcountError


def adapter_option(*names: str, **others: Any) -> Callable[[Any], Any]:
    """An option of the adapter that is trained."""
    return click.option(*names, cls=GroupedOption, group="Adapter", **others)


def parallel_option(*names: str, **others: Any) -> Callable[[Any], Any]:
    """An option that divides the training among GPUs, or keeps a part of it elsewhere."""
    return click.option(*names, cls=GroupedOption, group="GPUs and offload", **others)


# {option of this command: argument of `lora`}
ADAPTER_OPTIONS = {
    "r": "r",
    "targets": "targets",
    "target_parameters": "target_parameters",
    "target_pattern": "target_pattern",
    "layers_to_transform": "layers_to_transform",
    "rank_pattern": "rank_pattern",
    "modules_to_save": "modules_to_save",
    "adapter_dtype": "dtype",
}


@define_command("training", "llama-3.1-8b --qlora --context 2k --gpu h100", MODEL)
@click.option(
    "--optimizer",
    default="adamw",
    metavar="NAME",
    help="adamw (default), adamw8bit, paged-adamw, paged-adamw8bit, adafactor, muon or sgd.",
)
@click.option("--precision", default="bf16-mixed", metavar="NAME", help="bf16-mixed (default), bf16 or fp32.")
@click.option("--context", type=TOKENS, metavar="N", help="Tokens per sequence; 8k means 8,192.")
@number_option("--batch", default=1, help="Sequences per micro-batch and GPU (default: 1).")
@click.option("--source", type=TOKENS, metavar="N", help="Encoder input length (default: the context).")
@click.option("--checkpointing", default="none", metavar="KIND", help="Recompute: none (default), selective or full.")
@click.option("--flash-attention/--no-flash-attention", default=True, help="Assume flash attention (default).")
@click.option("--dropout", is_flag=True, help="Keep masks for dropout of residual branches and attention weights.")
@click.option(
    "--chunked-loss", is_flag=True, help="Compute logits and loss in chunks of tokens, as Liger Kernel and Unsloth do."
)
@adapter_option("--lora", is_flag=True, help="Train LoRA adapters; the weights of the model are frozen.")
@adapter_option("--qlora", is_flag=True, help="The same beside weights in NF4: --lora --weights nf4-double.")
@adapter_option("--dora", is_flag=True, help="Train DoRA adapters; with --qlora, QDoRA.")
@adapter_option("-r", "r", type=INTEGER, metavar="N", help="Rank (default: 16).")
@adapter_option("--targets", metavar="A,B,…", help="Adapt these modules, as in lora (default: all-linear).")
@adapter_option("--target-parameters", metavar="A,B,…", help="Adapt these parameters: mlp.experts.gate_up_proj, ….")
@adapter_option("--target-pattern", metavar="REGEX", help="Adapt the modules whose full names match.")
@adapter_option("--layers-to-transform", metavar="I,J,…", help="Adapt only these layers, by index from 0.")
@adapter_option("--rank-pattern", multiple=True, metavar="NAME=N", help="Rank of modules whose names end so.")
@adapter_option("--modules-to-save", metavar="A,B,…", help="Train these modules as a whole: lm_head, ….")
@adapter_option("--adapter-dtype", metavar="DTYPE", help="Dtype of the adapters: f32 (default, as in peft) or bf16.")
@adapter_option("--weights", metavar="DTYPE", help="Store the frozen weights as DTYPE (default: bf16).")
@parallel_option("--fsdp", type=INTEGER, metavar="N", help="Fully shard across N GPUs: --dp N --zero 3.")
@parallel_option(
    "--zero", type=INTEGER, metavar="STAGE", help="ZeRO: divide optimizer state (1), gradients (2), weights (3)."
)
@parallel_option("--dp", type=INTEGER, metavar="N", help="Data parallel: N replicas (default: the remaining GPUs).")
@parallel_option("--tp", type=INTEGER, default=1, metavar="N", help="Tensor parallel: N GPUs share every matrix.")
@parallel_option("--pp", type=INTEGER, default=1, metavar="N", help="Pipeline parallel: divide layers into N stages.")
@parallel_option("--sp", is_flag=True, help="Sequence parallel: divide norms and dropout among the --tp GPUs, too.")
@parallel_option("--ep", type=INTEGER, default=1, metavar="N", help="Expert parallel: N replicas share the experts.")
@parallel_option("--offload-optimizer", metavar="PLACE", help="ZeRO-Offload: optimizer state on the cpu or nvme.")
@parallel_option("--offload-params", metavar="PLACE", help="With ZeRO 3: weights on the cpu or nvme.")
@parallel_option("--nodes", type=INTEGER, default=1, metavar="N", help="Nodes, for --estimators (default: 1).")
@click.option("--estimators", is_flag=True, help="Also show what DeepSpeed's and Accelerate's estimators print.")
@click.option("--gpu", metavar="[Nx]NAME", help="Check whether the training fits N GPUs, such as 8xH100.")
@click.option(
    "--memory", type=BYTES, metavar="SIZE", help="Check whether the training fits devices with SIZE of memory: 24GB."
)
@click.option(
    "--overhead",
    type=OVERHEAD,
    default="1GB",
    metavar="SIZE",
    help="Assume that a runtime takes SIZE on each device (default: 1GB).",
)
def command(request: CommandRequest, **options: Any) -> None:
    """Show the memory that training takes on each GPU: weights, gradients, optimizer state and activations.

    With an adapter, only its parameters have gradients and an optimizer state. Activations are the values that the
    backward pass reads. With several pipeline stages, the fullest one is shown.
    The exit code of the check against a device is 1 if the training does not fit, and 3 if it is too close to call."""
    from paramcount.costs.training.render import build_training_table
    from paramcount.costs.training.training import train

    if options["sp"] and options["tp"] == 1:
        raise ParamcountError("--sp requires --tp")
    for option in ("dp", "zero"):
        if options["fsdp"] is not None and options[option] is not None:
            raise ParamcountError(f"--fsdp cannot be combined with --{option}, because it sets both --dp and --zero")
    if options["gpu"] is not None and options["memory"] is not None:
        raise ParamcountError("--gpu cannot be combined with --memory")
    lora = read_adapter(options)
    model = request.load()
    training = train(model, lora=lora, **options)
    request.emit_model(build_training_table(training), model, training)
    exit_with_verdict(training.fit.verdict if training.fit else "")


def read_adapter(options: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments of `lora`, which it takes out of the options; None if no adapter is trained.

    Raises: ParamcountError for an option of the adapter without one.
    """
    kinds = {name: options.pop(name) for name in ("lora", "qlora", "dora")}
    given = {name: value for name in ADAPTER_OPTIONS if (value := options.pop(name)) not in (None, ())}
    if not any(kinds.values()):
        if given or options["weights"] is not None:
            name = next(iter(given), "weights")
            flag = "-r" if name == "r" else f"--{name.replace('_', '-')}"
            raise ParamcountError(f"{flag} requires --lora, --qlora or --dora")
        return None
    if kinds["qlora"] and options["weights"] is None:
        options["weights"] = "nf4-double"
    if "adapter_dtype" in given:
        from paramcount.costs.adapters.adapters import check_word
        from paramcount.formats.weights.plain import DTYPES

        check_word("adapter_dtype", given["adapter_dtype"], DTYPES)
    arguments = {ADAPTER_OPTIONS[name]: value for name, value in given.items()}
    return arguments | ({"method": "dora"} if kinds["dora"] else {})
