"""How each kind of memory of a training is computed, in words."""

from __future__ import annotations

from collections.abc import Iterator

from paramcount.costs.adapters.adapters import Lora
from paramcount.costs.dtypes import parse_weight_format
from paramcount.costs.training.adapter_activations import get_adapter_bytes
from paramcount.costs.training.optimizers import OPTIMIZERS
from paramcount.costs.training.setup import DTYPE_LABELS, PRECISIONS, Setup
from paramcount.costs.training.shares import FP32, TrainingShare
from paramcount.output.numbers import format_bytes


def describe_formulas(setup: Setup, share: TrainingShare, stages: int, adapter: Lora | None = None) -> dict[str, str]:
    """{kind of memory: how it is computed}; of one GPU."""
    precision = PRECISIONS[setup.precision]
    parameters = f"{share.parameters:,} parameters"
    if setup.tp * setup.pp * setup.ep > 1:
        where = f" of stage {share.stage}" if stages > 1 else ""
        parameters += f" on a GPU{where}"
    gradients = f"{parameters} × {precision.gradients} bytes ({DTYPE_LABELS[precision.gradients]})"
    weights = f"{parameters} × {precision.weights} bytes ({DTYPE_LABELS[precision.weights]}){divide(setup, 3)}"
    if adapter:
        trained = f"{adapter.trainable:,} trained parameters"
        gradients = f"{trained}, {format_bytes(share.gradients_bytes)}"
        if all(module.kind == "adapter" for module in adapter.modules):
            size = FP32 if get_adapter_bytes(adapter) == FP32 else precision.gradients
            gradients = f"{trained} × {size} bytes ({adapter.dtype if size == 2 else 'FP32'})"
        base = format_bytes(share.weights_bytes - share.adapter_bytes)
        label = parse_weight_format(setup.weights).label
        weights = f"{parameters} in {label}, {base}; {trained}, {format_bytes(share.adapter_bytes)}{divide(setup, 3)}"
    if setup.offload_params:
        weights = "largest module and its gradients" if adapter is None else "largest module"
    if setup.offload_optimizer and setup.zero >= 2:
        gradients = "on the CPU as soon as they are reduced"
    return {
        "weights": weights,
        "gradients": f"{gradients}{'' if setup.offload_optimizer and setup.zero >= 2 else divide(setup, 2)}",
        "optimizer": describe_state(setup, share),
        "activations": describe_activations(setup, share),
    }


def divide(setup: Setup, zero: int) -> str:
    """How the data-parallel GPUs divide it; those with the same experts divide these."""
    if setup.zero < zero or setup.dp == 1:
        return ""
    if setup.ep == 1:
        return f", 1/{setup.dp} on each GPU"
    copies = setup.dp // setup.ep
    experts = f"1/{copies}" if copies > 1 else "all"
    return f", {experts} of the experts and 1/{setup.dp} of the rest on each GPU"


def describe_state(setup: Setup, share: TrainingShare) -> str:
    optimizer = OPTIMIZERS[setup.optimizer]
    if setup.offload_optimizer:
        return "on the CPU or NVMe, which updates the weights"
    state = f"{optimizer.state}, {format_bytes(share.state_bytes)}"
    if optimizer.is_paged:
        state = f"{optimizer.state} that are not paged, {format_bytes(share.state_bytes)}"
    if share.master_bytes:
        state = f"FP32 master weights, {format_bytes(share.master_bytes)}; {state}"
    return f"{state}{divide(setup, 1)}"


def describe_activations(setup: Setup, share: TrainingShare) -> str:
    """Such as "inputs of 32 layers, 2.15 GB; max(one recomputed layer 1.36 GB, logits 4.20 GB)"."""
    what = "inputs" if setup.checkpointing == "full" else "values for the backward pass"
    without = " without attention weights" if setup.checkpointing == "selective" else ""
    in_flight = setup.pp - share.stage
    batches = f" for {in_flight} micro-batches" if in_flight > 1 else ""
    parts = []
    if share.recomputed_bytes:
        parts.append(f"one recomputed layer {format_bytes(share.recomputed_bytes)}")
    if share.logits_bytes:
        parts.append(f"logits {format_bytes(share.logits_bytes)}")
    most = f"max({', '.join(parts)})" if len(parts) > 1 else "".join(parts)
    kept = f"{what} of {share.layers} layers{without}{batches}, {format_bytes(share.saved_bytes)}"
    return f"{kept}; {most}" if most else kept


def describe_offload(setup: Setup, share: TrainingShare) -> Iterator[str]:
    """The parts of what is not on the GPU: "FP32 master weights, 32.1 GB"."""
    for what, size in share.offload:
        device = setup.offload_params if what == "weights" else setup.offload_optimizer
        yield f"{what}, {format_bytes(size)}{' on NVMe' if device == 'nvme' else ''}"
