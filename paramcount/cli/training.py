"""paramcount training MODEL"""

from __future__ import annotations

from functools import partial
from typing import Any

from paramcount.cli.options import MODEL, CommandRequest, define_command, exit_with_verdict, option
from paramcount.cli.quantities import BYTES, INTEGER, OVERHEAD, TOKENS
from paramcount.errors import ParamcountError

adapter_option = partial(option, group="Adapter")
parallel_option = partial(option, group="GPUs and offload")
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
@option(
    "--optimizer NAME",
    "adamw (default), adamw8bit, paged-adamw, paged-adamw8bit, adafactor, muon or sgd.",
    default="adamw",
)
@option("--precision NAME", "bf16-mixed (default), bf16 or fp32.", default="bf16-mixed")
@option("--context N", "Tokens per sequence; 8k means 8,192.", type=TOKENS)
@option("--batch N", "Sequences per micro-batch and GPU (default: 1).", default=1)
@option("--source N", "Encoder input length (default: the context).", type=TOKENS)
@option("--checkpointing KIND", "Recompute: none (default), selective or full.", default="none")
@option("--flash-attention/--no-flash-attention", "Assume flash attention (default).", default=True)
@option("--dropout", "Keep masks for dropout of residual branches and attention weights.")
@option("--chunked-loss", "Compute logits and loss in chunks of tokens, as Liger Kernel and Unsloth do.")
@adapter_option("--lora", "Train LoRA adapters; the weights of the model are frozen.")
@adapter_option("--qlora", "The same beside weights in NF4: --lora --weights nf4-double.")
@adapter_option("--dora", "Train DoRA adapters; with --qlora, QDoRA.")
@adapter_option("-r,--rank N", "Rank (default: 16).", dest="r")
@adapter_option("--targets A,B,…", "Adapt these modules, as in lora (default: all-linear).")
@adapter_option("--target-parameters A,B,…", "Adapt these parameters: mlp.experts.gate_up_proj, ….")
@adapter_option("--target-pattern REGEX", "Adapt the modules whose full names match.")
@adapter_option("--layers-to-transform I,J,…", "Adapt only these layers, by index from 0.")
@adapter_option("--rank-pattern NAME=N", "Rank of modules whose names end so.", multiple=True)
@adapter_option("--modules-to-save A,B,…", "Train these modules as a whole: lm_head, ….")
@adapter_option("--adapter-dtype DTYPE", "Dtype of the adapters: f32 (default, as in peft) or bf16.")
@adapter_option("--weights DTYPE", "Store the frozen weights as DTYPE (default: bf16).")
@parallel_option("--fsdp N", "Fully shard across N GPUs: --dp N --zero 3.")
@parallel_option("--zero STAGE", "ZeRO: divide optimizer state (1), gradients (2), weights (3).", type=INTEGER)
@parallel_option("--dp N", "Data parallel: N replicas (default: the remaining GPUs).")
@parallel_option("--tp N", "Tensor parallel: N GPUs share every matrix.", default=1)
@parallel_option("--pp N", "Pipeline parallel: divide layers into N stages.", default=1)
@parallel_option("--sp", "Sequence parallel: divide norms and dropout among the --tp GPUs, too.")
@parallel_option("--ep N", "Expert parallel: N replicas share the experts.", default=1)
@parallel_option("--offload-optimizer PLACE", "ZeRO-Offload: optimizer state on the cpu or nvme.")
@parallel_option("--offload-params PLACE", "With ZeRO 3: weights on the cpu or nvme.")
@parallel_option("--nodes N", "Nodes, for --estimators (default: 1).", default=1)
@option("--estimators", "Also show what DeepSpeed's and Accelerate's estimators print.")
@option("--gpu [Nx]NAME", "Check whether the training fits N GPUs, such as 8xH100.")
@option("--memory SIZE", "Check whether the training fits devices with SIZE of memory: 24GB.", type=BYTES)
@option(
    "--overhead SIZE", "Assume that a runtime takes SIZE on each device (default: 1GB).", type=OVERHEAD, default="1GB"
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
    for name in ("dp", "zero"):
        if options["fsdp"] is not None and options[name] is not None:
            raise ParamcountError(f"--fsdp cannot be combined with --{name}, because it sets both --dp and --zero")
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
