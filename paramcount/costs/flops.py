"""The FLOPs of a forward pass: per decoded token, per prompt and for training; the time that GPUs need for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from paramcount.costs.absorption import absorb_up_projections, count_visible_pairs
from paramcount.costs.caches import list_cache_groups
from paramcount.costs.devices import check_size
from paramcount.costs.dtypes import parse_kv_dtype, parse_weight_format
from paramcount.costs.engines.engine import Engine
from paramcount.costs.engines.records import CacheRequest
from paramcount.costs.gpus import Gpu, find_gpu, parse_devices
from paramcount.costs.requests import default_context
from paramcount.costs.roofline import (
    Roofline,
    TrainingTime,
    estimate_training_time,
    find_rate,
    make_bound,
    sum_read,
)
from paramcount.costs.weight_formats import choose_format
from paramcount.costs.weights import store_weights
from paramcount.counting.results import JsonResult
from paramcount.errors import ParamcountError, make_printable
from paramcount.flow.operation import Form
from paramcount.tracing.run import decodes_tokens, has_encoder_input, trace_model
from paramcount.tracing.shapes import TraceOptions
from paramcount.tracing.trace import Step, Trace, count_layers
from paramcount.zoo import Model, count_model

DEFAULT_MFU = 0.4
MOST_TOKENS = 10**18
BACKWARD = 2  # FLOPs of a backward pass per FLOP of the forward pass: one product for the inputs, one for the weights


@dataclass(frozen=True, repr=False)
class Flops(JsonResult):
    """FLOPs of the matmuls and convolutions: 2 per multiply-add.

    Attention runs over all pairs of a query and a key, visible or masked, as the reference computes it. While decoding,
    multi-head latent attention (MLA) runs over the compressed latents, as engines compute it. While decoding and in a
    prompt the LM head runs for the last position, in training for all. A model that decodes no tokens, such
    as an encoder, has FLOPs of a pass over the whole context alone; the fields about decoding are None or empty.
    """

    json_fields = (
        "id", "name", "context", "source", "active", "flops_per_token", "prefill_flops", "expanded_flops_per_token",
        "training_flops_per_token", "two_n", "six_n", "elementwise_operations", "prefill_elementwise_operations",
        "train_tokens", "training_flops", "six_nd", "by_component", "prefill_by_component", "roofline",
        "training_time", "warnings", "notes",
    )  # fmt: skip
    html_table = "paramcount.costs.render_flops:build_flops_table"

    id: str
    name: str
    context: int  # tokens, the decoded one included
    source: int | None  # encoder input length
    active: int  # parameters that one token uses
    flops_per_token: int | None  # of decoding the last token of the context, with a KV cache
    prefill_flops: int  # of reading the whole context at once: a prompt, or a pass of a model that decodes no tokens
    by_component: Mapping[str, int]  # while decoding; sums to flops_per_token
    prefill_by_component: Mapping[str, int]
    # If MLA expands the latents of all cached tokens anew, as the reference does; None for other kinds of attention.
    expanded_flops_per_token: int | None
    training_flops_per_token: int  # forward and backward, averaged over the context
    elementwise_operations: int | None  # of a decoded token: elements computed without products; in no FLOPs
    prefill_elementwise_operations: int
    train_tokens: int | None = None
    roofline: Roofline | None = None  # lower bounds, if a GPU is named
    training_time: TrainingTime | None = None  # if a GPU and train_tokens are given
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def two_n(self) -> int:
        """The usual estimate of `flops_per_token`: 2 per active parameter."""
        return 2 * self.active

    @property
    def six_n(self) -> int:
        """The usual estimate of `training_flops_per_token`: 6 per active parameter."""
        return 6 * self.active

    @property
    def training_flops(self) -> int | None:
        """FLOPs of training on `train_tokens`, in sequences of `context`."""
        return None if self.train_tokens is None else self.train(self.train_tokens)

    @property
    def six_nd(self) -> int | None:
        """The usual estimate of `training_flops`: 6 per active parameter and token."""
        return None if self.train_tokens is None else self.six_n * self.train_tokens

    def train(self, tokens: int) -> int:
        """FLOPs of training on so many tokens, in sequences of `context`."""
        return self.training_flops_per_token * tokens


def measure_flops(
    model: Model,
    *,
    context: object = None,
    source: object = None,
    train_tokens: object = None,
    gpu: object = None,
    mfu: float | None = None,
    batch: object = None,
    dtype: object = None,
    kv_dtype: object = None,
) -> Flops:
    """The FLOPs of a model at a context length, and what they take on a GPU.

    Raises: ParamcountError for sizes that are not positive integers, for inputs that the model cannot process, and for
    an unknown dtype or GPU.
    """
    if mfu is not None and (gpu is None or train_tokens is None):
        raise ParamcountError("mfu requires gpu and train_tokens")
    for name, value in (("batch", batch), ("dtype", dtype), ("kv_dtype", kv_dtype)):
        if value is not None and gpu is None:
            raise ParamcountError(f"{name} requires gpu")
    trained = None if train_tokens is None else check_size("train_tokens", train_tokens, limit=MOST_TOKENS)
    count = count_model(model)
    tokens = default_context(model) if context is None else check_size("context", context)
    encoder_tokens = None if source is None else check_size("source", source)
    if encoder_tokens is None and has_encoder_input(model):
        encoder_tokens = tokens
    prefill = trace_model(model, TraceOptions(tokens, source=encoder_tokens))
    decoding = None
    if prefill.cache and decodes_tokens(model):
        decoding = trace_model(model, TraceOptions(1, past=tokens - 1, source=encoder_tokens))
    absorbed = absorb_up_projections(decoding.steps) if decoding else {}
    by_component = sum_by_component(decoding, absorbed) if decoding else {}
    prefill_by_component = sum_by_component(prefill, {})
    whole = sum(prefill_by_component.values())
    # A prompt needs the LM head at its last position, training at every one.
    forward = whole + (tokens - 1) * prefill_by_component.get("lm_head", 0) if decoding else whole
    unknown = dict.fromkeys(step.part for step in prefill.steps if step.multiply_adds is None)
    reason = "because they depend on the input"
    flops = Flops(
        id=model.id,
        name=model.name,
        context=tokens,
        source=encoder_tokens,
        active=count.active,
        flops_per_token=sum(by_component.values()) if decoding else None,
        prefill_flops=whole,
        by_component=by_component,
        prefill_by_component=prefill_by_component,
        expanded_flops_per_token=sum_flops(decoding, get_multiply_adds) if decoding and absorbed else None,
        training_flops_per_token=(1 + BACKWARD) * forward // tokens,
        elementwise_operations=decoding.elementwise_operations if decoding else None,
        prefill_elementwise_operations=prefill.elementwise_operations,
        train_tokens=trained,
        warnings=(*prefill.warnings, *(f"the FLOPs of the {part} part are not included, {reason}" for part in unknown)),
    )
    if gpu is None:
        return flops
    for option, value in (("batch", batch), ("kv_dtype", kv_dtype)):
        if value is not None and decoding is None:
            raise ParamcountError(f"{option} requires a model that decodes tokens; {make_printable(model.id)} does not")
    gpus, name = parse_devices(gpu, where="gpu")
    device = find_gpu(name)
    sequences = 1 if batch is None else check_size("batch", batch)
    request = CacheRequest(tokens, sequences, parse_kv_dtype(kv_dtype or "bf16"), encoder_tokens)
    flops = replace(flops, roofline=measure_bounds(model, decoding, prefill, request, dtype, (gpus, device)))
    if trained is None:
        return flops
    rate, reason = find_rate(device, parse_weight_format(dtype or "bf16"))
    if rate is None:
        return replace(flops, warnings=(*flops.warnings, f"no time of training: {reason}"))
    time = estimate_training_time(device, gpus, rate, flops.train(trained), DEFAULT_MFU if mfu is None else mfu)
    return replace(flops, training_time=time)


def measure_bounds(
    model: Model, decoding: Trace | None, prefill: Trace, request: CacheRequest, dtype: object, devices: tuple[int, Gpu]
) -> Roofline:
    """Lower bounds for the time of a decoding step, if the model decodes tokens, and of a prompt.

    Masked pairs of a query and a key are left out, and MLA is computed over its latents while decoding: kernels do so.
    All sequences of a batch may choose the same experts.
    """
    (gpus, gpu), format = devices, choose_format(model, dtype)
    rate, reason = find_rate(gpu, format)
    rows = store_weights(count_model(model), format)
    step = None
    if decoding:
        cached = Engine().allocate(list_cache_groups(model), request)
        absorbed = absorb_up_projections(decoding.steps, count_visible_pairs)
        step = make_bound(
            gpu,
            gpus,
            rate,
            weights_bytes=sum_read(rows, decoding),
            cache_bytes=int(cached.kv_bytes * find_read_share(decoding)) + cached.state_bytes,
            flops=request.batch * sum_flops(decoding, get_visible, absorbed),
        )
    return Roofline(
        gpu=gpu.name,
        gpus=gpus,
        dtype=format.label,
        kv_dtype=request.kv_dtype.label,
        batch=request.batch,
        rate_dtype=rate.upper() if rate else None,
        rate_reason=reason,
        flops_per_second=gpu.flops[rate] if rate else None,
        bytes_per_second=gpu.bandwidth,
        decoding=step,
        prompt=make_bound(
            gpu, gpus, rate, weights_bytes=sum_read(rows, prefill), cache_bytes=0, flops=sum_flops(prefill, get_visible)
        ),
    )


def get_multiply_adds(step: Step) -> int:
    return step.multiply_adds or 0


def get_visible(step: Step) -> int:
    return step.visible_multiply_adds or 0


def find_read_share(trace: Trace) -> Fraction:
    """The share of the cached keys that a pass reads: layers with chosen tokens or chunks read some of them."""
    read = cached = Fraction(0)
    for step in trace.steps:
        if step.form is Form.SCORES and step.multiply_adds and step.product:
            sizes = (*step.inputs[1][1:], step.product.out[-1])  # of a key, and how many there are
            elements = count_layers(step) * prod(n for n in sizes if isinstance(n, int))
            read += elements * Fraction(get_visible(step), step.multiply_adds)
            cached += elements
    return read / cached if cached else Fraction(1)


def sum_flops(trace: Trace, count: Callable[[Step], int], absorbed: Mapping[int, int] | None = None) -> int:
    """FLOPs of a pass. `count`: the multiply-adds of a step. `absorbed`: those of steps by position."""
    known = absorbed or {}
    return sum(2 * known.get(i, count(step)) * count_layers(step) for i, step in enumerate(trace.steps))


def sum_by_component(trace: Trace, absorbed: Mapping[int, int]) -> dict[str, int]:
    """FLOPs per component of the overview, the largest first; products of activations alone are "attention".

    `absorbed`: the multiply-adds of steps by position, where they are not those of the reference.
    """
    sums: dict[str, int] = {}
    for i, step in enumerate(trace.steps):
        flops = 2 * absorbed.get(i, get_multiply_adds(step)) * count_layers(step)
        component = (step.component or "attention").partition(".")[0]
        if flops:
            sums[component] = sums.get(component, 0) + flops
    return dict(sorted(sums.items(), key=lambda item: -item[1]))
