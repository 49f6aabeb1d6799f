"""What the memory estimators of DeepSpeed and Accelerate print for a model, by their own formulas.

Sources: DeepSpeed, runtime/zero/stage_1_and_2.py, estimate_zero2_model_states_mem_needs, and runtime/zero/stage3.py,
estimate_zero3_model_states_mem_needs and model_to_params (commit 007cca6a); Accelerate 1.15.0, commands/estimate.py,
estimate_training_usage and gather_data, and utils/modeling.py, get_max_layer_size.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from paramcount.architectures.classes import get_base_class
from paramcount.costs.adapters.sites import list_all_tensors
from paramcount.costs.devices import check_size
from paramcount.counting import Count
from paramcount.counting.tensors import list_tensors
from paramcount.errors import ParamcountError
from paramcount.sizes import Sizes
from paramcount.sizes.derivations import change_class
from paramcount.zoo import Model, count_model

BUFFER_FACTOR = 1.5  # DeepSpeed's additional_buffer_factor


class ZeroEstimate(NamedTuple):
    """One line of DeepSpeed's estimators: model states without activations."""

    stage: int  # of ZeRO
    offload_optimizer: bool
    offload_params: bool
    zero_init: bool  # whether the weights are divided while they are created
    cpu_bytes: int  # per node
    gpu_bytes: int  # per GPU


def find_largest_module(count: Count) -> int:
    """Parameters of the module that has the most of its own: the largest layer of `model_to_params`."""
    sums: dict[tuple[str, object], int] = {}
    for tensor in list_all_tensors(count):
        key = tensor.name.rpartition(".")[0], tensor.repeats
        sums[key] = sums.get(key, 0) + prod(tensor.shape)
    return max(sums.values(), default=0)


def estimate_zero(total: int, largest: int, gpus: int = 1, nodes: int = 1) -> tuple[ZeroEstimate, ...]:
    """The lines of estimate_zero2/3_model_states_mem_needs_all_cold. `gpus`: per node.

    >>> estimate_zero(2_851_598_336, 32_899_072, gpus=8)[0].cpu_bytes
    136876720128
    """
    return (*estimate_zero2(total, gpus, nodes), *estimate_zero3(total, largest, gpus, nodes))


def estimate_zero2(total: int, gpus: int, nodes: int) -> Iterator[ZeroEstimate]:
    """16 bytes per parameter for the optimiser, divided; 2 for the weights and 2 for the gradients, not divided."""
    n = gpus * nodes
    cpu = total * max(4 * n, 16) * BUFFER_FACTOR
    yield ZeroEstimate(2, True, False, False, int(cpu), 2 * total)
    yield ZeroEstimate(2, False, False, False, int(total * 4 * gpus * BUFFER_FACTOR), 4 * total + int(16 * total / n))


def estimate_zero3(total: int, largest: int, gpus: int, nodes: int) -> Iterator[ZeroEstimate]:
    """18 bytes per parameter, divided, and 4 per parameter of the largest module, with its gradients."""
    gathered = 4 * largest
    for optimizer, params in ((True, True), (True, False), (False, False)):
        for zero_init in (True, False):
            per_value = 18 if params else 16
            whole = total * 4 * gpus  # FP32 weights of all processes
            cpu: float = total * per_value / nodes
            gpu = 0 if params else 2 * total / (gpus * nodes)
            if not optimizer:
                cpu, gpu = largest * 4 * gpus, 18 * total / (gpus * nodes)
            if not zero_init:
                cpu = max(whole, cpu) if optimizer else whole
            yield ZeroEstimate(3, optimizer, params, zero_init, int(cpu * BUFFER_FACTOR), gathered + int(gpu))


# ---- Accelerate


def count_base_model(sizes: Sizes) -> int:
    """Parameters of the model that `AutoModel` builds: without an LM head."""
    base = get_base_class(type(sizes))
    tensors = list_tensors(change_class(sizes, base) if base else sizes, head=False)
    return sum(tensor.elements for tensor in tensors if tensor.kind == "total")


def estimate_adam(parameters: int) -> dict[str, int]:
    """{dtype: "Training using Adam"} of `accelerate estimate-memory`, in bytes: the largest of its four steps.

    In both dtypes that is twice the state of the optimiser or four times the FP32 weights; activations are not in it.
    """
    size = 4 * parameters
    return {"float32": 4 * size, "float16": 2 * size}


# ---- both


class Estimate(NamedTuple):
    """What a tool prints for a model."""

    tool: str  # DeepSpeed | Accelerate
    options: str  # as it prints them
    gpu_bytes: int
    cpu_bytes: int | None = None  # per node; None if the tool estimates none


def list_estimates(model: Model, gpus: int, nodes: object = 1) -> tuple[Estimate, ...]:
    """The lines that the estimators print for a model on so many GPUs of all nodes together.

    Raises: ParamcountError for nodes that do not divide the GPUs.
    """
    n_nodes = check_size("nodes", nodes)
    if gpus % n_nodes:
        raise ParamcountError(f"= {n_nodes} does not divide {gpus} GPUs", where="nodes")
    count = count_model(model)
    zero = list_zero_lines(count.total, find_largest_module(count), gpus // n_nodes, n_nodes)
    adam = estimate_adam(count_base_model(model.sizes)).items()
    return *zero, *(Estimate("Accelerate", f"{dtype}, training using Adam", size) for dtype, size in adam)


def list_zero_lines(total: int, largest: int, gpus: int, nodes: int = 1) -> tuple[Estimate, ...]:
    """The lines of DeepSpeed's estimators. `gpus`: per node."""
    estimates = []
    for line in estimate_zero(total, largest, gpus, nodes):
        optimizer = f"offload_optimizer={describe_place(line.offload_optimizer)}"
        options = f"ZeRO 2, {optimizer}"
        if line.stage == 3:
            params = f"offload_param={describe_place(line.offload_params)}"
            options = f"ZeRO 3, {params}, {optimizer}, zero_init={int(line.zero_init)}"
        estimates.append(Estimate("DeepSpeed", options, line.gpu_bytes, line.cpu_bytes))
    return tuple(estimates)


def describe_place(is_offloaded: bool) -> str:
    return "cpu" if is_offloaded else "none"
