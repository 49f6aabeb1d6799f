"""The memory of a training as a table: one row per kind of memory, each with how it is computed."""

from __future__ import annotations

from paramcount.costs.adapters.adapters import NAMES
from paramcount.costs.devices import DOES_NOT_FIT
from paramcount.costs.render_fit import describe_devices, describe_each, describe_suggestions, describe_verdict
from paramcount.costs.training.formulas import describe_offload
from paramcount.costs.training.optimizers import OPTIMIZERS
from paramcount.costs.training.setup import PLAIN_WEIGHTS, PRECISIONS, Setup
from paramcount.costs.training.training import Training
from paramcount.output.numbers import format_bytes
from paramcount.output.tables import Column, Table

NOT_INCLUDED = "not included: communication buffers, gathered layers, kernels' temporary values"
ESTIMATORS = (
    "other estimators, without activations: DeepSpeed counts gradients in FP32 where ZeRO 3 divides them, the largest "
    "module twice, and 1.5 times the CPU's memory; Accelerate counts 16 bytes per parameter in FP32 and 8 in FP16, of "
    "the model without its LM head; both print GiB as GB"
)


def build_training_table(training: Training, *, in_python: bool = False) -> Table:
    """Weights, gradients, optimiser state, activations and their total on the fullest GPU. `in_python`: names
    arguments, not options."""
    columns = [
        Column("memory", "on each GPU", right=False),
        Column("bytes", "bytes", show=format_bytes),
        Column("formula", "formula", right=False, style="dim"),
    ]
    rows: list[list[object]] = [
        [name, getattr(training, f"{name}_bytes"), formula] for name, formula in training.formulas.items()
    ]
    rows.append(["total", training.total_bytes, ""])
    setup = training.setup
    if training.offload_bytes:
        kinds = "; ".join(describe_offload(setup, training.share))
        rows.append(["not on the GPU", training.offload_bytes, kinds])
    heading = f"{training.name}   {describe_trained(training)}, {OPTIMIZERS[setup.optimizer].label}"
    return Table(
        columns,
        rows,
        training.to_dict(),
        above=[
            f"{heading}, {PRECISIONS[setup.precision].label}",
            describe_setup(setup),
            *describe_fit(training, in_python),
        ],
        below=[*describe_stages(training), NOT_INCLUDED, *describe_estimates(training)],
        wraps=True,
        bold=("total",),
    )


def describe_trained(training: Training) -> str:
    """Such as "8,030,261,248 parameters", or "QLoRA, rank 16, 41,943,040 of 8,072,204,288 parameters trained"."""
    adapter = training.adapter
    if adapter is None:
        return f"{training.parameters:,} parameters"
    is_quantised = training.setup.weights not in PLAIN_WEIGHTS
    name = f"{'Q' if is_quantised else ''}{NAMES[adapter.method]}"
    return f"{name}, rank {adapter.r}, {adapter.trainable:,} of {adapter.total:,} parameters trained"


def describe_setup(setup: Setup) -> str:
    """Such as "8 GPUs (DP=8, ZeRO 3), batch 1 × 8,192, full recomputation, flash attention"."""
    gpus = f"{setup.gpus:,} GPUs ({setup.describe_parallelism()})" if setup.gpus > 1 else "1 GPU"
    recomputation = "no recomputation" if setup.checkpointing == "none" else f"{setup.checkpointing} recomputation"
    parts = [gpus, f"batch {setup.batch:,} × {setup.context:,}", recomputation]
    parts.append("flash attention" if setup.flash_attention else "no flash attention")
    parts += ["chunked loss"] if setup.chunked_loss else []
    return ", ".join([*parts, *(["dropout"] if setup.dropout else [])])


def describe_fit(training: Training, in_python: bool) -> list[str]:
    """The lines about the device: the verdict, the largest micro-batch, and what helps."""
    fit = training.fit
    if fit is None:
        return []
    capacity = format_bytes(fit.memory_bytes)
    batch = "no micro-batch fits"
    if fit.largest_batch != 0:
        batch = f"largest micro-batch {'unlimited' if fit.largest_batch is None else format(fit.largest_batch, ',')}"
    overhead = f"{format_bytes(fit.overhead_bytes)} of it assumed overhead"
    needed = f"needs {format_bytes(fit.needed_bytes)}{describe_each(fit)}, {overhead}; {capacity} available; {batch}"
    helps = describe_suggestions(fit.suggestions, in_python=in_python)
    return [
        describe_verdict(fit, describe_devices(fit), capacity),
        f"{overhead}; {batch}" if fit.verdict == DOES_NOT_FIT else needed,  # the verdict says what it needs
        *([helps] if helps else []),
    ]


def describe_estimates(training: Training) -> list[str]:
    """The lines of other tools' estimators, in their units, and why they differ."""
    if not training.estimates:
        return []
    lines = ["", ESTIMATORS]
    for tool, options, gpu, cpu in training.estimates:
        of_cpu = "" if cpu is None else f", CPU {cpu / 2**30:,.2f} GiB"
        lines.append(f"{tool}: GPU {gpu / 2**30:,.2f} GiB{of_cpu}   {options}")
    return lines


def describe_stages(training: Training) -> list[str]:
    if len(training.stages) == 1:
        return []
    totals = [format_bytes(share.total_bytes) for share in training.stages]
    shown = totals if len(totals) <= 6 else [*totals[:3], "…", *totals[-2:]]
    return [f"stage {training.share.stage} is the fullest; stages from the first: {', '.join(shown)}"]
