"""The memory that training takes on each GPU: weights, gradients, optimiser state and activations.

Sources: ZeRO, arXiv:1910.02054, section 3.1 and table 1 (16 bytes per parameter, and what each stage divides);
arXiv:2205.05198, section 4 (activations; the first of p pipeline stages keeps those of p micro-batches).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

from paramcount.costs.activations import Activations, LayerActivations, measure_activations
from paramcount.costs.devices import Device, list_device_notes
from paramcount.costs.dtypes import parse_weight_format
from paramcount.costs.optimizers import OPTIMIZERS
from paramcount.costs.requests import find_longest_context
from paramcount.costs.sharding import (
    Parallelism,
    ShardShape,
    check_parallelism,
    find_shape,
    share_weights,
    split_stacks,
)
from paramcount.costs.training_fit import TrainingFit, fit_training
from paramcount.costs.training_setup import DTYPE_LABELS, PRECISIONS, Setup
from paramcount.costs.weights import store_weights
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.counting.results import JsonResult
from paramcount.counting.sum_weights import list_flows
from paramcount.output.numbers import format_bytes
from paramcount.tracing.run import has_encoder_input
from paramcount.zoo import Model, count_model


class TrainingShare(NamedTuple):
    """What one GPU of a pipeline stage holds."""

    stage: int
    layers: int
    parameters: int
    weights_bytes: int
    gradients_bytes: int
    master_bytes: int  # FP32 copy of the weights
    state_bytes: int  # of the optimiser, without that copy
    saved_bytes: int  # activations kept for the backward pass
    recomputed_bytes: int  # activations of the layer that is recomputed
    logits_bytes: int

    @property
    def optimizer_bytes(self) -> int:
        return self.master_bytes + self.state_bytes

    @property
    def activations_bytes(self) -> int:
        """The most at one time: the logits are gone when the first layer is recomputed."""
        return self.saved_bytes + max(self.recomputed_bytes, self.logits_bytes)

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes + self.activations_bytes

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        return self._asdict() | {"total_bytes": self.total_bytes}


@dataclass(frozen=True)
class Training(JsonResult):
    """The memory of training on each GPU, in bytes; of several pipeline stages, that of the fullest."""

    json_fields = (
        "id", "name", "parameters", "setup", "gpus", "weights_bytes", "gradients_bytes", "optimizer_bytes",
        "activations_bytes", "total_bytes", "formulas", "stages", "layers", "fit", "warnings", "notes",
    )  # fmt: skip
    html_table = "paramcount.costs.render_training:build_training_table"

    id: str
    name: str
    parameters: int
    setup: Setup
    share: TrainingShare  # of the fullest stage
    stages: tuple[TrainingShare, ...]
    layers: tuple[LayerActivations, ...]  # activations of one layer and micro-batch on one GPU
    formulas: Mapping[str, str]  # {weights, gradients, optimizer, activations: how it is computed}
    fit: TrainingFit | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def weights_bytes(self) -> int:
        return self.share.weights_bytes

    @property
    def gradients_bytes(self) -> int:
        return self.share.gradients_bytes

    @property
    def optimizer_bytes(self) -> int:
        """State of the optimiser, with the FP32 copy of the weights in mixed precision."""
        return self.share.optimizer_bytes

    @property
    def activations_bytes(self) -> int:
        return self.share.activations_bytes

    @property
    def total_bytes(self) -> int:
        return self.share.total_bytes

    @property
    def gpus(self) -> int:
        """GPUs that the parallelism uses."""
        return self.setup.gpus

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON, those of the setup among them."""
        fields = super().to_dict()
        pairs = ((value if name == "setup" else {name: value}).items() for name, value in fields.items())
        return dict(chain.from_iterable(pairs))


def measure_training(model: Model, setup: Setup, device: Device | None = None) -> Training:
    """The memory of training a model.

    Raises: ParamcountError for a model that cannot be divided like this.
    """
    count = count_model(model)
    shape = find_shape(count.sizes)
    check_parallelism(shape, Parallelism(setup.tp, setup.pp, setup.ep))
    if setup.source is None and has_encoder_input(model):
        setup = setup._replace(source=setup.context)
    stored = store_weights(count, parse_weight_format("bf16"))
    rows = [row for row in stored if row.tensor.is_counted]
    out, part = next(iter(list_flows(model.sizes, model.reading.head)))

    def measure(setup: Setup) -> tuple[tuple[TrainingShare, ...], Activations]:
        activations = measure_activations(out, part, setup)
        return share_training(rows, shape, setup, activations), activations

    def find_size(setup: Setup) -> int:
        return max(share.total_bytes for share in measure(setup)[0])

    stages, activations = measure(setup)
    fullest = max(stages, key=lambda share: share.total_bytes)
    limit = find_longest_context(model)
    unknown = "whose size depends on an input other than text are not included"
    warnings = [f"activations of the {name} part {unknown}" for name in activations.unknown]
    if limit is not None and setup.context > limit:
        warnings.append(f"a context of {setup.context:,} exceeds the {limit:,} positions of {model.id}")
    training = Training(
        id=model.id,
        name=model.name,
        parameters=count.total,
        setup=setup,
        share=fullest,
        stages=stages,
        layers=activations.layers,
        formulas=describe_formulas(setup, fullest, len(stages)),
        warnings=tuple(warnings),
        notes=tuple(list_device_notes(device)),
    )
    return training if device is None else replace(training, fit=fit_training(setup, device, find_size))


# ---- shares


def share_training(
    rows: Sequence[StoredTensor], shape: ShardShape, setup: Setup, activations: Activations
) -> tuple[TrainingShare, ...]:
    """What one GPU of each pipeline stage holds."""
    precision, optimizer = PRECISIONS[setup.precision], OPTIMIZERS[setup.optimizer]

    def share(count: Callable[[StoredTensor], int], zero: int) -> list[int]:
        return share_values([row._replace(bytes=count(row)) for row in rows], shape, setup, setup.zero >= zero)

    parameters = share(lambda row: row.values, 4)
    weights = share(lambda row: precision.weights * row.values, 3)
    gradients = share(lambda row: precision.gradients * row.values, 2)
    masters = share(lambda row: precision.master * row.values, 1)
    states = share(lambda row: row.copies * optimizer.count_bytes(row.tensor, precision.state), 1)
    stages = split_stacks(shape.n_layers, setup.pp)
    kept = [share_activations(activations, setup, i, layers) for i, layers in enumerate(stages)]
    columns = zip(parameters, weights, gradients, masters, states)
    return tuple(
        TrainingShare(i, n_layers, *values, *sizes) for i, (values, (n_layers, *sizes)) in enumerate(zip(columns, kept))
    )


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


def share_activations(activations: Activations, setup: Setup, stage: int, layers: range) -> tuple[int, int, int, int]:
    """(layers, kept, recomputed, logits): activations on one GPU of a stage, in bytes.

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
        n_layers += copies
        saved += copies * kept
        largest = max(largest, layer.saved_bytes - kept if copies else 0)
    saved += activations.before_bytes if stage == 0 else 0
    is_last = stage == setup.pp - 1
    saved = saved * (setup.pp - stage) + (activations.after_bytes if is_last else 0)
    return n_layers, saved, largest, activations.logits_bytes if is_last else 0


# ---- words


def describe_formulas(setup: Setup, share: TrainingShare, stages: int) -> dict[str, str]:
    precision, optimizer = PRECISIONS[setup.precision], OPTIMIZERS[setup.optimizer]
    parameters = f"{share.parameters:,} parameters"
    if setup.tp * setup.pp * setup.ep > 1:
        where = f" of stage {share.stage}" if stages > 1 else ""
        parameters += f" on a GPU{where}"

    def divide(zero: int) -> str:
        """How the data-parallel GPUs divide it; those with the same experts divide these."""
        if setup.zero < zero or setup.dp == 1:
            return ""
        if setup.ep == 1:
            return f", 1/{setup.dp} on each GPU"
        copies = setup.dp // setup.ep
        experts = f"1/{copies}" if copies > 1 else "all"
        return f", {experts} of the experts and 1/{setup.dp} of the rest on each GPU"

    state = f"{optimizer.state}, {format_bytes(share.state_bytes)}"
    if precision.master:
        state = f"FP32 master weights, {format_bytes(share.master_bytes)}; {state}"
    return {
        "weights": f"{parameters} × {precision.weights} bytes ({DTYPE_LABELS[precision.weights]}){divide(3)}",
        "gradients": f"{parameters} × {precision.gradients} bytes ({DTYPE_LABELS[precision.gradients]}){divide(2)}",
        "optimizer": f"{state}{divide(1)}",
        "activations": describe_activations(setup, share),
    }


def describe_activations(setup: Setup, share: TrainingShare) -> str:
    """Such as "inputs of 32 layers, 2.15 GB; recomputed layer, 1.36 GB; logits in FP32, 4.20 GB"."""
    what = "inputs" if setup.checkpointing == "full" else "values for the backward pass"
    without = " without attention weights" if setup.checkpointing == "selective" else ""
    in_flight = setup.pp - share.stage
    batches = f" for {in_flight} micro-batches" if in_flight > 1 else ""
    parts = []
    if share.recomputed_bytes:
        parts.append(f"recomputed layer, {format_bytes(share.recomputed_bytes)}")
    if share.logits_bytes:
        parts.append(f"logits in FP32, {format_bytes(share.logits_bytes)}")
    most = f"; {'the larger of ' if len(parts) > 1 else ''}{' and '.join(parts)}" if parts else ""
    return f"{what} of {share.layers} layers{without}{batches}, {format_bytes(share.saved_bytes)}{most}"
