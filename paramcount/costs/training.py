"""The memory that training takes on each GPU: weights, gradients, optimiser state and activations.

Sources: ZeRO, arXiv:1910.02054, section 3.1 and table 1 (16 bytes per parameter, and what each stage divides);
arXiv:2205.05198, section 4 (activations; the first of p pipeline stages keeps those of p micro-batches).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from paramcount.costs.activations import ActivationOptions, Activations, LayerActivations, measure_activations
from paramcount.costs.dtypes import parse_weight_format
from paramcount.costs.fit import LARGEST_BATCH, Device, check_size, find_largest
from paramcount.costs.memory import find_longest_context
from paramcount.costs.optimizers import OPTIMIZERS
from paramcount.costs.sharding import Parallelism, Shape, check_parallelism, find_shape, share_weights, split_layers
from paramcount.costs.weights import store_weights
from paramcount.counting import SCHEMA_VERSION
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.counting.sum_weights import list_flows
from paramcount.errors import ParamcountError, make_choice_error
from paramcount.output.numbers import format_bytes
from paramcount.tracing.run import has_encoder_input
from paramcount.zoo import Model, count_model

CHECKPOINTING = ("none", "selective", "full")
MOST_GPUS = 10**6


class Precision(NamedTuple):
    """The bytes of one value."""

    label: str
    weights: int
    gradients: int
    state: int  # of the optimiser
    master: int  # of the copy of the weights that the optimiser updates; 0 if it updates the weights themselves
    activations: int


PRECISIONS: Mapping[str, Precision] = {
    "bf16-mixed": Precision("BF16 mixed precision", 2, 2, 4, 4, 2),
    "bf16": Precision("BF16", 2, 2, 2, 0, 2),
    "fp32": Precision("FP32", 4, 4, 4, 0, 4),
}
DTYPE_LABELS = {2: "BF16", 4: "FP32"}


class Setup(NamedTuple):
    """How a model is trained."""

    optimizer: str = "adamw"
    precision: str = "bf16-mixed"
    context: int = 1
    batch: int = 1  # sequences per micro-batch and GPU
    source: int | None = None
    checkpointing: str = "none"
    flash_attention: bool = True
    dropout: bool = False
    zero: int = 0  # 1: the optimiser state is divided among the data-parallel GPUs; 2: gradients, too; 3: weights, too
    dp: int = 1
    tp: int = 1
    pp: int = 1
    sp: bool = False
    ep: int = 1

    @property
    def gpus(self) -> int:
        return self.dp * self.tp * self.pp

    def describe_parallelism(self) -> str:
        """Such as "dp 8, ZeRO 3"; "" for one GPU."""
        names = [f"{name} {getattr(self, name)}" for name in ("dp", "tp", "pp", "ep") if getattr(self, name) > 1]
        return ", ".join([*names, *(["sp"] if self.sp else []), *([f"ZeRO {self.zero}"] if self.zero else [])])


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


class TrainingFit(NamedTuple):
    """Whether a training fits the memory of each device."""

    device: str
    devices: int
    memory_bytes: int
    overhead_bytes: int  # assumed, on each device
    needed_bytes: int  # on the fullest device, overhead included
    free_bytes: int  # negative if it does not fit
    largest_batch: int  # sequences per micro-batch that fit; 0 if none does
    advice: str = ""  # what makes it fit

    @property
    def fits(self) -> bool:
        return self.free_bytes >= 0


@dataclass(frozen=True)
class Training:
    """The memory of training on each GPU, in bytes; of several pipeline stages, that of the fullest."""

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
        """All fields as plain data for JSON."""
        names = ("weights_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes", "total_bytes")
        return {
            "schema_version": SCHEMA_VERSION,
            "id": self.id,
            "name": self.name,
            "parameters": self.parameters,
            **self.setup._asdict(),
            "gpus": self.gpus,
            **{name: getattr(self, name) for name in names},
            "formulas": dict(self.formulas),
            "stages": [share._asdict() | {"total_bytes": share.total_bytes} for share in self.stages],
            "layers": [layer._asdict() for layer in self.layers],
            "fit": self.fit._asdict() | {"fits": self.fit.fits} if self.fit else None,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }


def make_setup(
    *,
    optimizer: object = "adamw",
    precision: object = "bf16-mixed",
    context: object,
    batch: object = 1,
    source: object = None,
    checkpointing: object = "none",
    flash_attention: bool = True,
    dropout: bool = False,
    zero: object = None,
    fsdp: object = None,
    dp: object = None,
    tp: object = 1,
    pp: object = 1,
    sp: bool = False,
    ep: object = 1,
    devices: int | None = None,
) -> Setup:
    """How a model is trained. `fsdp` GPUs hold a part of everything each: dp with ZeRO 3.

    `devices`: if given, data parallelism uses those that nothing else does.

    Raises: ParamcountError for an unknown name, and for sizes that are not positive integers or do not divide.
    """
    check_choice("optimizer", optimizer, tuple(OPTIMIZERS))
    check_choice("precision", precision, tuple(PRECISIONS))
    check_choice("checkpointing", checkpointing, CHECKPOINTING)
    sizes = {"tp": tp, "pp": pp, "ep": ep} | {k: v for k, v in {"dp": dp, "fsdp": fsdp}.items() if v is not None}
    checked = {name: check_size(name, value, limit=MOST_GPUS) for name, value in sizes.items()}
    if fsdp is not None and (dp is not None or zero is not None):
        raise ParamcountError("fsdp cannot be combined with dp or zero, because it sets both")
    if zero not in (None, 0, 1, 2, 3) or isinstance(zero, bool):
        raise ParamcountError(f"= {zero!r}", where="zero", expected="1, 2 or 3")
    width = checked["tp"] * checked["pp"]
    data_parallel = checked.get("dp", checked.get("fsdp"))
    if data_parallel is None:
        data_parallel = max(1, (devices or 1) // width)
    setup = Setup(
        optimizer=str(optimizer),
        precision=str(precision),
        context=check_size("context", context),
        batch=check_size("batch", batch),
        source=None if source is None else check_size("source", source),
        checkpointing=str(checkpointing),
        flash_attention=flash_attention,
        dropout=dropout,
        zero=3 if fsdp is not None else int(str(zero or 0)),
        dp=data_parallel,
        tp=checked["tp"],
        pp=checked["pp"],
        sp=sp,
        ep=checked["ep"],
    )
    if setup.dp % setup.ep:
        choices = [n for n in range(1, setup.dp + 1) if not setup.dp % n]
        raise ParamcountError(f"= {setup.ep} does not divide dp = {setup.dp}", where="ep", choices=choices)
    if sp and setup.tp == 1:
        raise ParamcountError("sp requires tp")
    if devices not in (None, 1, setup.gpus):
        found = f"{setup.describe_parallelism() or 'dp 1'} uses {setup.gpus} devices, but there are {devices}"
        raise ParamcountError(found)
    return setup


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise make_choice_error(value, choices, where=name)


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
    rows = [row for row in stored if row.tensor.role == "parameter"]
    out, part = next(iter(list_flows(model.settled_sizes, model.reading.head)))

    def measure(setup: Setup) -> tuple[tuple[TrainingShare, ...], Activations]:
        activations = measure_activations(out, part, make_activation_options(setup))
        return share_training(rows, shape, setup, activations), activations

    stages, activations = measure(setup)
    fullest = max(stages, key=lambda share: share.total_bytes)
    limit = find_longest_context(model)
    unknown = "part are not included, because they depend on the input"
    warnings = [f"the activations of the {name} {unknown}" for name in activations.unknown]
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
    )
    return training if device is None else replace(training, fit=fit_training(setup, device, measure))


def make_activation_options(setup: Setup) -> ActivationOptions:
    return ActivationOptions(
        context=setup.context,
        batch=setup.batch,
        source=setup.source,
        value_bytes=PRECISIONS[setup.precision].activations,
        flash_attention=setup.flash_attention,
        dropout=setup.dropout,
        tp=setup.tp,
        sp=setup.sp,
    )


# ---- shares


def share_training(
    rows: Sequence[StoredTensor], shape: Shape, setup: Setup, activations: Activations
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
    stages = split_layers(shape.n_layers, setup.pp)
    kept = [share_activations(activations, setup, i, layers) for i, layers in enumerate(stages)]
    columns = zip(parameters, weights, gradients, masters, states)
    return tuple(
        TrainingShare(i, n_layers, *values, *sizes) for i, (values, (n_layers, *sizes)) in enumerate(zip(columns, kept))
    )


def share_values(rows: Sequence[StoredTensor], shape: Shape, setup: Setup, divided: bool) -> list[int]:
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
        copies = len(layer.indices)
        if layer.part == "decoder":
            copies = sum(index in layers for index in layer.indices)
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
    """How each figure is computed, in words."""
    precision, optimizer = PRECISIONS[setup.precision], OPTIMIZERS[setup.optimizer]
    parameters = f"{share.parameters:,} parameters"
    if setup.tp * setup.pp * setup.ep > 1:
        where = f" of stage {share.stage}" if stages > 1 else ""
        parameters += f" on a GPU{where}"

    def divide(zero: int) -> str:
        return f", 1/{setup.dp} on each GPU" if setup.zero >= zero and setup.dp > 1 else ""

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


# ---- fit


def fit_training(
    setup: Setup, device: Device, measure: Callable[[Setup], tuple[tuple[TrainingShare, ...], Activations]]
) -> TrainingFit:
    """Whether a training fits, the largest micro-batch, and what makes it fit."""

    def find_size(setup: Setup) -> int:
        return max(share.total_bytes for share in measure(setup)[0])

    needed = find_size(setup)
    fit = TrainingFit(
        device=device.name,
        devices=setup.gpus,
        memory_bytes=device.memory_bytes,
        overhead_bytes=device.overhead_bytes,
        needed_bytes=needed + device.overhead_bytes,
        free_bytes=device.usable_bytes - needed,
        largest_batch=find_largest(lambda n: find_size(setup._replace(batch=n)) <= device.usable_bytes, LARGEST_BATCH),
    )
    if fit.fits:
        return fit
    for changed in list_savings(setup):
        if find_size(changed) <= device.usable_bytes:
            return fit._replace(advice=f"{describe_changes(setup, changed)} makes it fit")
    return fit


def list_savings(setup: Setup) -> list[Setup]:
    """Setups that take less memory, from the cheapest change."""
    sharded = setup._replace(zero=3) if setup.dp > 1 else setup
    recomputed = setup._replace(checkpointing="full")
    both = sharded._replace(checkpointing="full")
    candidates = [setup._replace(flash_attention=True), sharded, recomputed, both, both._replace(batch=1)]
    candidates.append(both._replace(batch=1, optimizer="adamw8bit"))
    return [candidate for candidate in candidates if candidate != setup]


def describe_changes(setup: Setup, changed: Setup) -> str:
    """The options that differ: "--zero 3 --checkpointing full"."""
    options = []
    for name, value in changed._asdict().items():
        if value != getattr(setup, name):
            options.append("flash attention" if name == "flash_attention" else f"--{name} {value}")
    return " ".join(options)
