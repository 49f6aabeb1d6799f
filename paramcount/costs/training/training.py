"""The memory that training takes on each GPU: weights, gradients, optimiser state and activations.

Sources: ZeRO, arXiv:1910.02054, section 3.1 and table 1 (16 bytes per parameter, and what each stage divides);
arXiv:2205.05198, section 4 (activations; the first of p pipeline stages keeps those of p micro-batches).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from paramcount.costs.activations import Activations, LayerActivations, measure_activations
from paramcount.costs.adapters.adapters import Lora, measure_adapter
from paramcount.costs.devices import Device, list_device_notes, make_device
from paramcount.costs.dtypes import parse_weight_format
from paramcount.costs.fit import Suggestion
from paramcount.costs.requests import default_context
from paramcount.costs.sharding import Parallelism, ShardShape, check_parallelism, find_shape
from paramcount.costs.training.adapter_activations import Adapted
from paramcount.costs.training.estimators import Estimate, find_largest_module, list_estimates
from paramcount.costs.training.fit import TrainingFit, fit_training
from paramcount.costs.training.formulas import describe_formulas
from paramcount.costs.training.setup import PRECISIONS, Setup, make_setup
from paramcount.costs.training.shares import ModelState, TrainedRow, TrainingShare, list_adapter_rows, share_training
from paramcount.costs.weights import store_weights
from paramcount.counting import Count
from paramcount.counting.results import JsonResult
from paramcount.counting.sum_weights import list_flows
from paramcount.errors import ParamcountError, describe_value, make_choice_error
from paramcount.tracing.run import check_length, has_encoder_input
from paramcount.zoo import Model, count_model

QLORA = "nf4-double"  # the dtype of its frozen weights
METHODS = ("lora", "rslora", "dora")  # of adapters that can be trained


@dataclass(frozen=True, repr=False)
class Training(JsonResult):
    """The memory of training on each GPU, in bytes; of several pipeline stages, that of the fullest."""

    json_fields = (
        "id", "name", "parameters", "setup", "gpus", "weights_bytes", "gradients_bytes", "optimizer_bytes",
        "activations_bytes", "total_bytes", "offload_bytes", "formulas", "stages", "layers", "fit", "warnings", "notes",
        "trainable", "method", "r", "targets", "estimates",
    )  # fmt: skip
    html_table = "paramcount.costs.training.render:build_training_table"
    names_options = True

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
    adapter: Lora | None = None  # without one, all parameters are trained
    estimates: tuple[Estimate, ...] = ()  # of other tools, if they are asked for

    @property
    def trainable(self) -> int:
        """Trained parameters."""
        return self.adapter.trainable if self.adapter else self.parameters

    @property
    def method(self) -> str:
        """full, lora, rslora or dora."""
        return self.adapter.method if self.adapter else "full"

    @property
    def r(self) -> int | None:
        """The rank of the adapter."""
        return self.adapter.r if self.adapter else None

    @property
    def targets(self) -> tuple[str, ...]:
        """What the adapter applies to; of a pattern, the pattern."""
        if self.adapter is None:
            return ()
        return self.adapter.targets or self.adapter.target_parameters or (self.adapter.target_pattern,)

    @property
    def offload_bytes(self) -> int:
        """What lies on the CPU or NVMe, or in pages that may, for each GPU."""
        return self.share.offload_bytes

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


def train(
    model: Model,
    *,
    lora: bool | Mapping[str, Any] | None,
    gpu: str | None,
    memory: int | None,
    overhead: int | None,
    estimators: bool,
    nodes: int,
    **setup: Any,
) -> Training:
    """The memory of training as `paramcount.training` has it; `setup` are its options for `make_setup`.

    Raises: ParamcountError as `paramcount.training` does.
    """
    adapter = make_adapter(model, lora, setup["weights"])
    devices = device = None
    if gpu is not None or memory is not None:
        devices, device = make_device(gpu, memory, overhead)
    if setup["context"] is None:
        setup["context"] = default_context(model)
    result = measure_training(model, make_setup(setup, devices), device, adapter)
    if not estimators:
        return result
    return replace(result, estimates=list_estimates(model, result.gpus, nodes))


def measure_training(model: Model, setup: Setup, device: Device | None = None, adapter: Lora | None = None) -> Training:
    """The memory of training a model, or an adapter of it.

    Raises: ParamcountError for a model that cannot be divided like this.
    """
    count = count_model(model)
    shape = find_shape(count.sizes)
    check_parallelism(shape, Parallelism(setup.tp, setup.pp, setup.ep))
    if setup.source is None and has_encoder_input(model):
        setup = setup._replace(source=setup.context)
    if adapter and (setup.tp > 1 or setup.ep > 1):
        where, size = ("tp", setup.tp) if setup.tp > 1 else ("ep", setup.ep)
        raise ParamcountError(f"= {size} is not supported with an adapter", where=where, expected="1")
    out, part = next(iter(list_flows(model.sizes, model.reading.head)))

    def measure(setup: Setup) -> tuple[tuple[TrainingShare, ...], Activations]:
        adapted = Adapted(adapter, count.sizes, setup) if adapter else None
        activations = measure_activations(out, part, setup, adapted)
        return share_training(find_state(count, shape, setup, adapter), setup, activations), activations

    def find_fullest(setup: Setup) -> TrainingShare:
        return max(measure(setup)[0], key=lambda share: share.total_bytes)

    stages, activations = measure(setup)
    fullest = max(stages, key=lambda share: share.total_bytes)
    unknown = "whose size depends on an input other than text are not included"
    warnings = [f"activations of the {name} part {unknown}" for name in activations.unknown]
    warnings += check_length(model, setup.context)
    training = Training(
        id=model.id,
        name=model.name,
        parameters=count.total,
        setup=setup,
        share=fullest,
        stages=stages,
        layers=activations.layers,
        formulas=describe_formulas(setup, fullest, len(stages), adapter),
        warnings=(*warnings, *(adapter.warnings if adapter else ())),
        notes=(*(adapter.notes if adapter else ()), *list_device_notes(device)),
        adapter=adapter,
    )
    if device is None:
        return training
    fit = fit_training(setup, device, find_fullest)
    if not fit.fits and adapter is None:
        fit = fit._replace(suggestions=(*fit.suggestions, *suggest_adapter(model, setup, device)))
    return replace(training, fit=fit)


def suggest_adapter(model: Model, setup: Setup, device: Device) -> Iterator[Suggestion]:
    """QLoRA of all linear layers, if that fits as it is or with recomputation."""
    if setup.tp > 1 or setup.ep > 1 or setup.offload_params:
        return
    with suppress(ParamcountError):  # peft refuses some models
        adapter = measure_adapter(model)
        for recomputation in dict.fromkeys((setup.checkpointing, "full")):
            changed = setup._replace(weights=QLORA, checkpointing=recomputation)
            fit = measure_training(model, changed, device, adapter).fit
            if fit and fit.fits:
                changes = {} if recomputation == setup.checkpointing else {"checkpointing": recomputation}
                yield Suggestion({"lora": True, "weights": QLORA, **changes}, fit.free_bytes)
                return


def find_state(count: Count, shape: ShardShape, setup: Setup, adapter: Lora | None) -> ModelState:
    """The tensors of a model on the GPUs: all trained, or frozen beside those of an adapter."""
    stored = store_weights(count, parse_weight_format(setup.weights))
    rows = tuple(row for row in stored if row.tensor.is_counted)
    largest = find_largest_module(count) if setup.offload_params else 0
    if adapter is None:
        precision = PRECISIONS[setup.precision]
        return ModelState((), tuple(TrainedRow(row, precision) for row in rows), shape, largest)
    return ModelState(rows, list_adapter_rows(adapter, setup), shape, largest, adapter.layers_to_transform)


def make_adapter(model: Model, lora: bool | Mapping[str, Any] | None, weights: object) -> Lora | None:
    """The adapter that is trained; None if all parameters are.

    Raises: ParamcountError for unknown options of the adapter, for a method without low rank, and for a dtype of frozen
    weights without an adapter.
    """
    if lora is None or lora is False:
        if weights is not None:
            raise ParamcountError(f"= {describe_value(weights)} is for frozen weights; requires lora", where="weights")
        return None
    if weights is not None:
        parse_weight_format(weights, where="weights")
    options = {} if lora is True else dict(lora)
    known = inspect.signature(measure_adapter).parameters.keys() - {"model"}
    if unknown := next((name for name in options if name not in known), None):
        raise make_choice_error(unknown, tuple(sorted(known)), where="lora")
    adapter = measure_adapter(model, **options)
    if adapter.method not in METHODS:
        raise ParamcountError(f"= {adapter.method} is not supported by training", where="method", choices=METHODS)
    return adapter
