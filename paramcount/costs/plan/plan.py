"""From a need to deployments: on which GPUs, on how many and divided how an engine serves so many users.

Everything about a deployment is measured as `memory` measures it, and its record has the arguments to check it with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache

from paramcount.costs.caches import list_cache_groups, list_layer_caches
from paramcount.costs.deployment import Deployment, DraftModel
from paramcount.costs.devices import DOES_NOT_FIT, FITS, check_size, list_device_notes, make_device
from paramcount.costs.draft_models import prepare_draft
from paramcount.costs.dtypes import parse_weight_format
from paramcount.costs.engines.engine import MOST_DEVICES, Engine
from paramcount.costs.engines.records import CacheRequest
from paramcount.costs.fit import Fit, Suggestion, measure_fit
from paramcount.costs.gpus import Gpu, find_gpu, list_gpus, parse_devices
from paramcount.costs.plan.choices import (
    ReasonedChoice,
    choose_engine,
    choose_kv_dtype,
    choose_weights,
    is_apple,
    list_support,
)
from paramcount.costs.plan.records import Need, PlannedDeployment, ServingPlan, ServingVariant, Subject
from paramcount.costs.plan.search import GpuCandidate, ParallelLayout, PlacedCandidate, search
from paramcount.costs.plan.speed import Speed, bound_speed, sum_reads, trace_passes
from paramcount.costs.requests import find_engine, find_longest_context, make_request, warn_ignored_window, warn_request
from paramcount.costs.roofline import find_rate
from paramcount.costs.sharding import StoredRows, find_shape
from paramcount.costs.suggestions import list_suggestions
from paramcount.costs.weight_formats import choose_format, store_model
from paramcount.errors import ParamcountError, describe_value
from paramcount.formats.quantization_config import WeightDtype
from paramcount.zoo import Model, count_model

WITH_NOTES = 3  # deployments


def make_plan(
    model: Model,
    need: Need,
    *,
    gpus: str | Iterable[str] | None = None,
    dtypes: str | Iterable[str] | None = None,
    limit: object = 10,
) -> ServingPlan:
    """Deployments of a model on each of the GPUs that are named, or on the best `limit` of all.

    Raises: ParamcountError for an unknown GPU, dtype or engine, and for sizes that are not positive integers.
    """
    most = check_size("limit", limit)
    check_size("users", need.users)
    subject = Subject(
        model, need, list_cache_groups(model), tuple(list_layer_caches(model)),
        find_shape(count_model(model).sizes), find_longest_context(model),
    )  # fmt: skip
    names: list[str | None] = [None] if dtypes is None else [*list_words(dtypes, "dtype")]
    formats = {name: None if name is None else parse_weight_format(name) for name in names}
    variants: dict[tuple[ReasonedChoice, str | None], ServingVariant] = {}
    left_out: dict[tuple[ReasonedChoice, str | None], ParamcountError] = {}
    candidates = []
    supported = list_support(model, subject.groups, need.engine)
    for gpu, number in list_choices(gpus, need.engine):
        for name, format in formats.items():
            key = choose_engine(gpu, format, need.engine, supported), name
            if key not in variants and key not in left_out:
                try:
                    variant = make_variant(subject, len(variants), *key)
                    make_candidate(subject, variant, gpu, number).deployment.measure()
                    variants[key] = variant
                except ParamcountError as error:  # the engine does not support the model or the dtype
                    left_out[key] = error
            if key in variants:
                candidates.append(make_candidate(subject, variants[key], gpu, number))
    if not candidates:
        raise next(iter(left_out.values()))
    placements = search(candidates, most if gpus is None else None)
    if gpus is None and placements[0].verdict != FITS:
        placements = placements[:1]
    plan = describe_plan(subject, [*variants.values()], placements)
    notes = [f"{choice.name} ({choice.reason}) was left out: {error}" for (choice, _), error in left_out.items()]
    if any(variant.choice.name in supported for variant in variants.values()):
        notes += [f"{name} was left out: {it.note}" for name, it in supported.items() if not it.is_supported]
    return replace(plan, notes=(*plan.notes, *notes))


def list_words(given: str | Iterable[str], where: str) -> list[str]:
    """The words of a list, or of a string that commas separate, each once.

    Raises: ParamcountError if there are none.
    """
    words = given.split(",") if isinstance(given, str) else [*given]
    found = [word.strip() if isinstance(word, str) else word for word in words]
    if not found or not all(found):
        raise ParamcountError(f"= {describe_value(given)}", where=where, expected="names separated by commas")
    return [*dict.fromkeys(found)]


def list_choices(gpus: str | Iterable[str] | None, engine: str | None) -> list[tuple[Gpu, int]]:
    """[(GPU, how many may be used)]; all that the engine runs on if none is named."""
    if gpus is None:
        found = [find_gpu(gpu.name) for gpu in list_gpus()]  # an Apple chip with the memory that a program gets
        return [
            (gpu, MOST_DEVICES)
            for gpu in found
            if engine is None or find_engine(engine).runs_on_apple or not is_apple(gpu)
        ]
    choices = []
    for text in list_words(gpus, "gpu"):
        number, name = parse_devices(text, where="gpu")
        choices.append((find_gpu(name), MOST_DEVICES if name == text else number))
    return choices


def make_variant(subject: Subject, number: int, choice: ReasonedChoice, name: str | None) -> ServingVariant:
    """Raises: ParamcountError for an unknown engine, and as `memory` does for what is cached."""
    model, need = subject.model, subject.need
    engine = find_engine(choice.name)
    engine.check_options(need.engine_options)
    support = engine.find_support(model, subject.groups, need.engine_options)
    if not support.is_supported:
        raise ParamcountError(support.note, where=f"engine {choice.name}")
    bits = measure_bits(model) if name is None and engine.reads_gguf else 0.0
    dtype, weights = choose_weights(model, name, engine, bits)
    format = choose_format(model, dtype)
    kv_dtype = choose_kv_dtype(engine, need.kv_dtype)
    given = {
        "context": need.context,
        "batch": need.users,
        "kv_dtype": kv_dtype,
        "state_dtype": need.state_dtype,
        "source": need.source,
    }
    options = need.engine_options
    request = make_request(model, subject.groups, **given, options=options)
    request = engine.apply_options(request, has_context=need.context is not None)
    draft, named = choose_draft(subject, engine, request, format)
    request = request._replace(has_draft=draft is not None)
    arguments = {
        "dtype": dtype,
        **given,
        "context": request.context,
        "batch": request.batch,
        "engine": choice.name,
        "engine_options": dict(request.options) or None,
        **named,
        "overhead": need.overhead,
        "utilization": need.utilization,
        "set": {name: after for name, (_, after) in model.changes.items()} or None,
    }
    arguments = {name: value for name, value in arguments.items() if value is not None}
    rows = store_model(model, format, {})
    return ServingVariant(number, choice, engine, dtype, weights, format, rows, request, arguments, draft, support.note)


def choose_draft(
    subject: Subject, engine: Engine, request: CacheRequest, format: WeightDtype
) -> tuple[DraftModel | None, dict[str, str]]:
    """(the draft model, the arguments of `memory`). The model itself as its draft has its format."""
    model, draft, dtype = subject.model, subject.need.draft, subject.need.draft_dtype
    if draft is None:
        if dtype is not None:
            raise ParamcountError("requires a draft model", where="draft_dtype")
        return None, {}
    if dtype is not None or draft.id != model.id:
        dtype, _ = choose_weights(draft, dtype, engine, measure_bits(draft))
        format = choose_format(draft, dtype)
    arguments = {"draft": draft.id, "draft_dtype": dtype}
    prepared = prepare_draft(draft, model, format, engine, request)
    return prepared, {name: value for name, value in arguments.items() if value is not None}


def measure_bits(model: Model) -> float:
    """Bits per weight, as released."""
    released = store_model(model, choose_format(model, None), {})
    return 8 * sum(row.bytes for row in released) / max(1, count_model(model).total)


def make_candidate(subject: Subject, variant: ServingVariant, gpu: Gpu, most: int) -> GpuCandidate:
    _, device = make_device(gpu.name, None, subject.need.overhead, subject.need.utilization)
    request = variant.request._replace(device=device)  # as `memory` has it
    if device.utilization is None:
        device = device._replace(utilization=variant.engine.choose_utilization(request.options))
    deployment = Deployment(
        subject.model, variant.rows, subject.caches, subject.shape, variant.engine, request, device,
        limit=subject.limit, source_is_context=subject.need.source is None and request.source is not None,
        draft=variant.draft,
    )  # fmt: skip
    return GpuCandidate(gpu, 1 if is_apple(gpu) else most, variant.number, deployment)


def describe_plan(subject: Subject, variants: list[ServingVariant], placements: list[PlacedCandidate]) -> ServingPlan:
    model, request = subject.model, variants[0].request
    notes: list[str] = []
    passes = None
    try:
        passes = None if subject.need.draft else trace_passes(model, request.context, request.source)
    except ParamcountError as error:
        notes.append(f"no bounds of the speed: {error}")
    if subject.need.draft:
        notes.append("no bounds of the speed: a step yields as many tokens as the model accepts of the draft")
    reads = {variant.number: sum_reads(variant.rows, passes) for variant in variants} if passes else {}

    @cache
    def store(name: str) -> StoredRows:
        return store_model(model, parse_weight_format(name), {})

    deployments = []
    for placement in placements:
        variant, gpu = variants[placement.candidate.variant], placement.candidate.gpu
        fit = measure_with_remedies(placement, placement.layout, variant, store)
        remedies: tuple[Suggestion, ...] = ()
        if fit.fits and placement.one_machine:
            remedies = measure_with_remedies(placement, placement.one_machine, variant, store).suggestions
        rate, _ = find_rate(gpu, variant.format)
        speed = None
        if passes and fit.verdict != DOES_NOT_FIT:
            shared = placement.layout.apply(placement.candidate.deployment).request
            replicas = variant.engine.count_replicas(shared, placement.parallel)
            speed = bound_speed(
                passes, reads[variant.number], subject.groups, request, placement.parallel, gpu, rate, replicas
            )
        deployments.append(describe_deployment(variant, placement, fit, speed, remedies))
    warnings = [*warn_request(model, subject.groups, request)]
    return ServingPlan(
        id=model.id,
        name=model.name,
        parameters=count_model(model).total,
        users=request.batch,
        context=request.context,
        context_limit=subject.limit,
        source=request.source,
        deployments=tuple(deployments),
        warnings=(*warnings, *warn_ignored_window(model, subject.groups)),
        notes=tuple(dict.fromkeys([*notes, *list_notes(variants, placements)])),
    )


def measure_with_remedies(
    placement: PlacedCandidate, layout: ParallelLayout, variant: ServingVariant, store: Callable[[str], StoredRows]
) -> Fit:
    """How a placement fits when the model is divided like this; if it does not, with what makes it fit."""
    deployment = layout.apply(placement.candidate.deployment)
    fit = measure_fit(deployment)
    if fit.fits:
        return fit
    is_gguf = variant.engine.reads_gguf or bool(variant.format.mix)
    suggestions = list_suggestions(fit, deployment, store, is_gguf=is_gguf)
    if is_apple(placement.candidate.gpu):
        suggestions = tuple(it for it in suggestions if "tp" not in it.options)  # a machine has one
    return fit._replace(suggestions=suggestions)


def describe_deployment(
    variant: ServingVariant, placement: PlacedCandidate, fit: Fit, speed: Speed | None, remedies: tuple[Suggestion, ...]
) -> PlannedDeployment:
    parallel, gpu = placement.parallel, placement.candidate.gpu
    deployment = placement.layout.apply(placement.candidate.deployment)
    arguments = {**variant.arguments, "gpu": f"{parallel.devices}x{gpu.name}"}
    if parallel.devices > 1:
        arguments |= {"tp": parallel.tp, "pp": parallel.pp}
    if parallel.ep > 1:
        arguments["ep"] = parallel.ep
    if placement.layout.options:
        arguments["engine_options"] = dict(deployment.request.options)
    return PlannedDeployment(
        gpu=gpu.name,
        devices=parallel.devices,
        tp=parallel.tp,
        pp=parallel.pp,
        ep=parallel.ep,
        attention_replicas=variant.engine.count_replicas(deployment.request, parallel),
        engine=variant.choice.name,
        engine_reason=variant.choice.reason,
        dtype=variant.weights.name,
        dtype_reason=variant.weights.reason,
        kv_dtype=variant.request.kv_dtype.label,
        fit=fit,
        speed=speed,
        on_one_machine=tuple(it for it in remedies if "tp" not in it.options),
        too_close_devices=placement.too_close.devices if placement.too_close and fit.fits else None,
        command=variant.engine.write_command(deployment, name_weights(deployment.model, variant)),
        arguments=arguments,
    )


def name_weights(model: Model, variant: ServingVariant) -> str:
    """What an engine loads: the release, by its Hugging Face id or directory; otherwise a name that stands for it."""
    place = model.hf or model.id
    if place.endswith(".json"):
        place = os.path.dirname(place) or "."
    if not variant.engine.reads_gguf and variant.dtype is None:
        return place
    name, dtype = os.path.basename(os.path.abspath(place)), variant.dtype or "bf16"
    if variant.choice.name == "ollama":
        return f"{name}:{dtype}".lower()
    return f"{name}-{dtype.upper()}.gguf" if variant.engine.reads_gguf else f"./{name}-{dtype}"


def list_notes(variants: list[ServingVariant], placements: list[PlacedCandidate]) -> Iterator[str]:
    """What the names of weights in the commands stand for, and what limits the memory of the best GPUs."""
    for placement in placements:
        variant, model = variants[placement.candidate.variant], placement.candidate.deployment.model
        name = name_weights(model, variant)
        if variant.note:
            yield variant.note
        if variant.engine.reads_gguf or variant.dtype is not None:
            yield f"{name} stands for the weights in {variant.weights.name}"
    for placement in placements[:WITH_NOTES]:
        yield from list_device_notes(placement.candidate.deployment.device)
