"""What one GPU of each pipeline stage holds in a training: weights, gradients, optimiser state and activations.

DeepSpeed keeps an offloaded state, its FP32 weights and gradients in FP32 on the CPU or NVMe (4 + 8 + 4 bytes per
trained parameter with AdamW), and offloaded weights there, of which the GPU holds the largest module with its gradients
at a time. Paged states need not be on the GPU.

Sources: arXiv:2101.06840 (ZeRO-Offload), section 3; DeepSpeed 0.18, runtime/zero/stage_1_and_2.py and stage3.py,
estimate_zero2_model_states_mem_needs and estimate_zero3_model_states_mem_needs; bitsandbytes 0.50, optim/optimizer.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from paramcount.costs.activations import Activations, LayerActivations
from paramcount.costs.adapters.adapters import Lora
from paramcount.costs.sharding import Parallelism, ShardShape, share_weights, split_stacks
from paramcount.costs.training.adapter_activations import get_adapter_bytes
from paramcount.costs.training.optimizers import OPTIMIZERS
from paramcount.costs.training.setup import PRECISIONS, Precision, Setup
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.formats.packing import Packing

FP32 = 4  # bytes of a gradient that DeepSpeed offloads


class TrainingShare(NamedTuple):
    """What one GPU of a pipeline stage holds."""

    stage: int
    layers: int
    parameters: int
    weights_bytes: int  # those of adapters included
    gradients_bytes: int
    master_bytes: int  # FP32 copy of the weights
    state_bytes: int  # of the optimiser, without that copy
    saved_bytes: int  # activations kept for the backward pass
    recomputed_bytes: int  # activations of the layer that is recomputed
    logits_bytes: int
    adapter_bytes: int = 0  # of the weights, those of adapters and of modules trained as a whole
    offload: tuple[tuple[str, int], ...] = ()  # (what is not on the GPU, bytes)

    @property
    def optimizer_bytes(self) -> int:
        return self.master_bytes + self.state_bytes

    @property
    def activations_bytes(self) -> int:
        """The most at one time: the logits are gone when the first layer is recomputed."""
        return self.saved_bytes + max(self.recomputed_bytes, self.logits_bytes)

    @property
    def offload_bytes(self) -> int:
        """What this GPU's process keeps on the CPU or NVMe."""
        return sum(size for _, size in self.offload)

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes + self.activations_bytes

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        offload = [{"what": what, "bytes": size} for what, size in self.offload]
        return self._asdict() | {"offload": offload, "total_bytes": self.total_bytes}


class TrainedRow(NamedTuple):
    """A tensor with gradients, and the bytes of one of its values."""

    row: StoredTensor
    precision: Precision


@dataclass(frozen=True)
class ModelState:
    """The tensors of a model that is trained."""

    frozen: tuple[StoredTensor, ...]  # stored as they are on the GPU
    trained: tuple[TrainedRow, ...]
    shape: ShardShape
    largest_module: int  # parameters
    only: tuple[int, ...] | None = None  # the layers with an adapter; None: all


def list_adapter_rows(adapter: Lora, setup: Setup) -> tuple[TrainedRow, ...]:
    """The tensors of an adapter. As in peft, they are FP32 unless the adapter has another dtype; FP32 values have no
    master copy. Modules that are trained as a whole have the training's precision."""
    rows = []
    for row, copies, kind in adapter.tensors:
        is_fp32 = kind == "adapter" and get_adapter_bytes(adapter) == FP32
        precision = PRECISIONS["fp32" if is_fp32 else setup.precision]
        stored = StoredTensor(row, copies, Packing("plain", "F32" if is_fp32 else "BF16"), 0)
        rows.append(TrainedRow(stored, precision))
    return tuple(rows)


def share_training(state: ModelState, setup: Setup, activations: Activations) -> tuple[TrainingShare, ...]:
    """What one GPU of each pipeline stage holds."""
    optimizer = OPTIMIZERS[setup.optimizer]
    base = state.frozen or tuple(row for row, _ in state.trained)

    def share(rows: Iterable[StoredTensor], zero: int) -> list[int]:
        return share_values(list(rows), state.shape, setup, setup.zero >= zero)

    def share_trained(count: Callable[[StoredTensor, Precision], int], zero: int) -> list[int]:
        return share((row._replace(bytes=count(row, precision)) for row, precision in state.trained), zero)

    def count_state(row: StoredTensor, precision: Precision) -> int:
        return row.copies * optimizer.count_bytes(row.tensor, precision.state)

    def count_pages(row: StoredTensor, precision: Precision) -> int:
        return count_state(row, precision) if optimizer.pages(row.tensor) else 0

    columns = zip(
        share((row._replace(bytes=row.values) for row in base), 4),
        share(state.frozen, 3),
        share_trained(lambda row, precision: precision.weights * row.values, 3),
        share_trained(lambda row, precision: precision.gradients * row.values, 2),
        share_trained(lambda row, precision: precision.master * row.values, 1),
        share_trained(count_state, 1),
        share_trained(count_pages, 1),
        share_trained(lambda row, _: FP32 * row.values, 1),
    )
    shares = []
    for i, (layers, column) in enumerate(zip(split_stacks(state.shape.n_layers, setup.pp), columns)):
        values, frozen, weights, gradients, masters, states, pages, offloaded = column
        n_layers, saved, recomputed, logits = share_activations(activations, setup, i, layers, state.only)
        share_of_stage = TrainingShare(
            i, n_layers, values, frozen + weights, gradients, masters, states, saved, recomputed, logits, weights
        )
        shares.append(offload(share_of_stage, setup, state, (pages, offloaded)))
    return tuple(shares)


def offload(share: TrainingShare, setup: Setup, state: ModelState, sizes: tuple[int, int]) -> TrainingShare:
    """What stays on the GPU. `sizes`: bytes of paged states, and of FP32 gradients on the CPU."""
    pages, gradients = sizes
    optimizer = OPTIMIZERS[setup.optimizer]
    moved: list[tuple[str, int]] = []
    if setup.offload_optimizer:
        masters = share.master_bytes
        moved += [("FP32 master weights", masters)] if masters else []
        moved += [(optimizer.state, share.state_bytes), ("FP32 gradients", gradients)]
        share = share._replace(master_bytes=0, state_bytes=0)
        share = share._replace(gradients_bytes=0) if setup.zero >= 2 else share
    elif pages:
        moved.append((f"pages of {optimizer.state}", pages))
        share = share._replace(state_bytes=share.state_bytes - pages)
    if setup.offload_params:
        moved.append(("weights", share.weights_bytes))
        precision = PRECISIONS[setup.precision]
        per_value = precision.weights + (0 if state.frozen else precision.gradients)
        share = share._replace(weights_bytes=min(share.weights_bytes * setup.dp, per_value * state.largest_module))
    return share._replace(offload=tuple(moved))


def share_values(rows: Sequence[StoredTensor], shape: ShardShape, setup: Setup, divided: bool) -> list[int]:
    """The sum of the rows' bytes on one GPU of each stage. `divided`: among the data-parallel GPUs, too.

    Expert parallelism divides the experts among data-parallel GPUs, so that fewer of these hold the same ones.
    """
    parallel = Parallelism(setup.tp, setup.pp)
    is_expert = [row.tensor.component.partition(".")[0] == "experts" for row in rows]
    experts = share_weights([row for row, expert in zip(rows, is_expert) if expert], shape, parallel)
    others = share_weights([row for row, expert in zip(rows, is_expert) if not expert], shape, parallel)
    per_gpu = -(-shape.n_experts // setup.ep)
    sums = []
    for of_experts, of_others in zip(experts, others):
        if setup.ep > 1:
            of_experts = -(-of_experts * per_gpu // shape.n_experts)
        if divided:
            of_experts, of_others = -(-of_experts * setup.ep // setup.dp), -(-of_others // setup.dp)
        sums.append(of_experts + of_others)
    return sums


def share_activations(
    activations: Activations, setup: Setup, stage: int, layers: range, only: Sequence[int] | None = None
) -> tuple[int, int, int, int]:
    """(layers, kept, recomputed, logits): activations on one GPU of a stage, in bytes. `only`: layers with an adapter.

    A stage keeps as many micro-batches as there are stages from it to the last: the 1F1B schedule.
    """
    n_layers = saved = largest = 0
    for layer in activations.layers:
        copies = layer.repeat.count
        if layer.part == "decoder":
            copies = layer.repeat.count_inside(layers)
        elif stage:
            copies = 0
        kept = {
            "none": layer.saved_bytes,
            "selective": layer.saved_bytes - layer.score_bytes,
            "full": min(layer.input_bytes, layer.saved_bytes),
        }[setup.checkpointing]
        if only is not None and layer.part == "decoder" and setup.checkpointing != "full":
            copies = layer.repeat.count_inside(range(max(layers.start, min(only)), layers.stop))
            saved -= (copies - count_adapted(layer, layers, only)) * (layer.saved_bytes - (layer.frozen_bytes or 0))
        n_layers += copies
        saved += copies * kept
        largest = max(largest, layer.saved_bytes - kept if copies else 0)
    saved += activations.before_bytes if stage == 0 else 0
    is_last = stage == setup.pp - 1
    saved = saved * (setup.pp - stage) + (activations.after_bytes if is_last else 0)
    return n_layers, saved, largest, activations.logits_bytes if is_last else 0


def count_adapted(layer: LayerActivations, layers: range, only: Sequence[int]) -> int:
    """How many of the layers have an adapter; a gradient passes the others behind the first of these."""
    return sum(layer.repeat.count_inside(range(i, i + 1)) for i in only if i in layers)
