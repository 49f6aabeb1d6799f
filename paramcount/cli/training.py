"""paramcount training MODEL"""

from __future__ import annotations

from typing import Any

import click

from paramcount.cli.options import MODEL, CommandRequest, define_command, exit_with_verdict, number_option
from paramcount.cli.quantities import BYTES, OVERHEAD, TOKENS
from paramcount.errors import ParamcountError


@define_command("training", "llama-3.1-8b --fsdp 8 --gpu 8xH100", MODEL)
@click.option("--optimizer", default="adamw", metavar="NAME", help="adamw, adamw8bit, adafactor, muon or sgd.")
@click.option("--precision", default="bf16-mixed", metavar="NAME", help="bf16-mixed (default), bf16 or fp32.")
@click.option("--context", type=TOKENS, metavar="N", help="Tokens per sequence; 8k means 8,192.")
@number_option("--batch", default=1, help="Sequences per micro-batch and GPU (default: 1).")
@click.option("--source", type=TOKENS, metavar="N", help="Encoder input length (default: the context).")
@click.option("--checkpointing", default="none", metavar="KIND", help="Recompute: none (default), selective or full.")
@click.option("--flash-attention/--no-flash-attention", default=True, help="Keep no attention weights (default).")
@click.option("--dropout", is_flag=True, help="Keep masks for dropout of residual branches and attention weights.")
@number_option("--fsdp", help="Divide everything among N data-parallel GPUs: --dp N --zero 3.")
@click.option("--zero", type=int, metavar="STAGE", help="ZeRO: divide optimizer state (1), gradients (2), weights (3).")
@number_option("--dp", help="Data parallel: N replicas (default: the remaining GPUs).")
@number_option("--tp", default=1, help="Tensor parallel: N GPUs share every matrix.")
@number_option("--pp", default=1, help="Pipeline parallel: divide the layers into N stages.")
@click.option("--sp", is_flag=True, help="Sequence parallel: divide norms and dropout among the --tp GPUs, too.")
@number_option("--ep", default=1, help="Expert parallel: N data-parallel GPUs share the experts.")
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

    Activations are the values that the backward pass reads. With several pipeline stages, the fullest one is shown.
    The exit code of the check against a device is 1 if the training does not fit, and 3 if it is too close to call."""
    from paramcount.api import training as measure_training
    from paramcount.costs.render_training import build_training_table

    if options["sp"] and options["tp"] == 1:
        raise ParamcountError("--sp requires --tp")
    for option in ("dp", "zero"):
        if options["fsdp"] is not None and options[option] is not None:
            raise ParamcountError(f"--fsdp cannot be combined with --{option}, because it sets both --dp and --zero")
    if options["gpu"] is not None and options["memory"] is not None:
        raise ParamcountError("--gpu cannot be combined with --memory")
    model = request.load()
    training = measure_training(model, **options)
    request.emit_model(build_training_table(training), model, training)
    exit_with_verdict(training.fit.verdict if training.fit else "")
