"""The memory that a model takes at inference: weights, KV cache and recurrent state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from paramcount.costs.available import AvailableCache, measure_available
from paramcount.costs.caches import CacheGroup, count_growth, count_windows, list_cache_groups, list_layer_caches
from paramcount.costs.deployment import Deployment
from paramcount.costs.devices import DOES_NOT_FIT, NO_DEVICE, PADDING_DIVISOR, Device, check_size, list_device_notes
from paramcount.costs.draft_models import DraftCost, describe_draft, prepare_draft
from paramcount.costs.dtypes import parse_weight_format
from paramcount.costs.engines import ENGINES
from paramcount.costs.engines.records import CacheRequest, Option
from paramcount.costs.fit import Fit, measure_fit
from paramcount.costs.requests import (
    find_engine,
    find_longest_context,
    make_request,
    warn_ignored_window,
    warn_request,
)
from paramcount.costs.sharding import Parallelism, StoredRows, find_shape
from paramcount.costs.suggestions import list_suggestions
from paramcount.costs.weight_formats import WeightCost, choose_format, list_formats, store_model
from paramcount.costs.weights import (
    WeightGroup,
    group_weights,
    list_storage_notes,
    split_files,
    sum_buffers,
    sum_mtp,
)
from paramcount.counting.results import JsonResult
from paramcount.errors import ParamcountError
from paramcount.formats.weights import list_padded_labels
from paramcount.output.numbers import format_bytes
from paramcount.zoo import Model, count_model


class ContextCost(NamedTuple):
    """The memory at one context length, all sequences together."""

    context: int
    kv_cache_bytes: int
    state_bytes: int
    total_bytes: int


@dataclass(frozen=True, repr=False)
class Memory(JsonResult):
    """The memory that inference takes. All sizes are exact for what they count, in bytes.

    `total_bytes` is weights, encoders in an mmproj file, buffers, KV cache and state, and all of a draft model; the
    overhead of a runtime is not included.
    """

    json_fields = (
        "id", "name", "dtype", "kv_dtype", "engine", "state_dtype", "context", "context_limit", "batch", "source",
        "parameters", "weights_bytes", "mmproj_bytes", "mtp_bytes", "buffers_bytes", "kv_cache_bytes", "state_bytes",
        "total_bytes", "kv_bytes_per_token", "window_bytes", "engine_options", "weights", "caches", "contexts",
        "formats", "draft", "fit", "available", "warnings", "notes",
    )  # fmt: skip
    html_table = "paramcount.costs.render_memory:build_memory_table"
    names_options = True

    id: str
    name: str
    dtype: str  # of the weights, for people: "BF16", "INT4 (group 128)"
    kv_dtype: str
    engine: str
    engine_options: Mapping[str, Option]  # the defaults included
    state_dtype: str  # of recurrent states: "FP32, convolutions BF16"; "" without states
    context: int  # tokens per sequence
    context_limit: int | None  # tokens that the model takes at most; None if unknown
    batch: int  # sequences
    source: int | None  # encoder input length
    parameters: int
    weights_bytes: int  # scales and zero points included; of a GGUF mix, those in the model's file
    mmproj_bytes: int  # of a GGUF mix: vision and audio encoders, which are in a file of their own; otherwise 0
    mtp_bytes: int  # of a GGUF mix: MTP layers, included in weights_bytes but not in total_bytes: they are not loaded
    buffers_bytes: int
    kv_cache_bytes: int
    state_bytes: int
    kv_bytes_per_token: int  # that every further token adds per sequence, however long the text is
    window_bytes: int  # the most that layers with a sliding window cache per sequence
    weights: tuple[WeightGroup, ...]
    caches: tuple[CacheGroup, ...]
    contexts: tuple[ContextCost, ...]
    formats: tuple[WeightCost, ...]  # the weights in the usual formats, the chosen one included
    request: CacheRequest  # what the cache is allocated for
    draft: DraftCost | None = None  # if another model drafts tokens
    draft_caches: tuple[CacheGroup, ...] = ()
    fit: Fit | None = None  # if a device is named
    available: AvailableCache | None = None  # if the bytes for the cache are given
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def total_bytes(self) -> int:
        return self.at(self.context).total_bytes

    @property
    def loaded_bytes(self) -> int:
        """Bytes of weights and buffers, in whichever file they are."""
        return self.weights_bytes - self.mtp_bytes + self.mmproj_bytes + self.buffers_bytes

    @property
    def padding_bytes(self) -> int:
        """Bytes that the kernels of an engine may add to the weights, not in the total."""
        labels = list_padded_labels()
        return sum(group.bytes for group in self.weights if group.format in labels) // PADDING_DIVISOR

    def at(self, context: int) -> ContextCost:
        """The memory at another context length.

        >>> from paramcount.api import memory
        >>> memory("llama-3.1-8b").at(131072).kv_cache_bytes
        17179869184
        """
        rules, request = ENGINES[self.engine], self.request._replace(context=context)
        at = rules.allocate(self.caches, request)
        total = self.loaded_bytes + at.kv_bytes + at.state_bytes
        if self.draft:
            total += self.draft.weights_bytes + rules.allocate(self.draft_caches, request).total_bytes
        return ContextCost(context, at.kv_bytes, at.state_bytes, total)

    @property
    def weights_by_component(self) -> dict[str, int]:
        """{component: bytes of its weights}."""
        sums: dict[str, int] = {}
        for group in self.weights:
            sums[group.component] = sums.get(group.component, 0) + group.bytes
        return sums


def measure_memory(
    model: Model,
    *,
    dtype: object = None,
    overrides: Mapping[str, object] | None = None,
    context: object = None,
    batch: object = 1,
    kv_dtype: object = "bf16",
    state_dtype: object = None,
    engine: object = "minimal",
    engine_options: Mapping[str, object] | None = None,
    source: object = None,
    device: Device | None = None,
    parallel: Parallelism | None = None,
    available_kv: object = None,
    draft: Model | None = None,
    draft_dtype: object = None,
) -> Memory:
    """The memory of a model at inference, and whether it fits a device.

    Raises: ParamcountError for an unknown dtype, component or engine, and for sizes that are not positive integers.
    """
    count = count_model(model)
    format = choose_format(model, dtype)
    chosen = {name: parse_weight_format(value, where=f"dtype of {name}") for name, value in (overrides or {}).items()}
    stored = store_model(model, format, chosen)
    weights = group_weights(stored)
    limit = find_longest_context(model)
    rules, groups = find_engine(engine), list_cache_groups(model)
    rules.check_options(engine_options or {})
    request = make_request(
        model,
        groups,
        context=context,
        batch=batch,
        kv_dtype=kv_dtype,
        state_dtype=state_dtype,
        source=source,
        options=engine_options or {},
    )
    total = device.memory_bytes * (parallel or Parallelism()).devices if device else 0
    request = rules.apply_options(request, has_context=context is not None, memory_bytes=total, limit=limit)
    request = request._replace(device=device, has_draft=draft is not None)
    length = request.context
    inside, mmproj_bytes = split_files(weights, format)
    allocation = rules.allocate(groups, request)
    fit = None
    if available_kv is None:
        available_kv = request.options.get("kv_cache_memory_bytes")
    deployment = Deployment(
        model, stored, list_layer_caches(model), find_shape(count.sizes), rules, request, device or NO_DEVICE,
        parallel or Parallelism(), limit, source_is_context=source is None and request.source is not None,
    )  # fmt: skip
    warnings = [*warn_request(model, groups, request), *warn_ignored_window(model, groups)]
    drafted = None
    if draft is not None:
        own = format if draft_dtype is None and draft.id == model.id else choose_format(draft, draft_dtype)
        drafted = prepare_draft(draft, model, own, rules, request)
        deployment = deployment._replace(draft=drafted)
        warnings += [f"{draft.id}: {text}" for text in draft.reading.warnings]
    elif draft_dtype is not None:
        raise ParamcountError("requires a draft model", where="draft_dtype")
    if device:
        if device.utilization is None:
            device = device._replace(utilization=rules.choose_utilization(request.options))
        deployment = deployment._replace(device=device)
        fit = measure_fit(deployment)
        is_gguf = rules.reads_gguf or bool(format.mix)

        def store(name: str) -> StoredRows:
            return store_model(model, parse_weight_format(name), chosen)

        fit = fit._replace(suggestions=list_suggestions(fit, deployment, store, is_gguf=is_gguf))
    support = rules.find_support(model, groups, request.options)
    warnings += () if support.is_supported else (support.note,)
    warnings += rules.warn(deployment) if fit and fit.verdict != DOES_NOT_FIT else ()
    mtp_bytes = sum_mtp(count, format)
    inside_file = f", {format_bytes(mtp_bytes)} of the file" if mtp_bytes else ""
    mtp_notes = []
    if count.mtp and not rules.loads_mtp(request):
        mtp_notes = [f"the MTP layers ({count.mtp:,} parameters{inside_file}) are not loaded"]
    memory = Memory(
        id=model.id,
        name=model.name,
        dtype=format.label,
        kv_dtype=request.kv_dtype.label,
        engine=rules.name,
        engine_options={**rules.options, **request.options},
        state_dtype=rules.describe_state_dtype(groups, request),
        context=length,
        context_limit=limit,
        batch=request.batch,
        source=request.source,
        parameters=count.total,
        weights_bytes=sum(group.bytes for group in inside) + mtp_bytes,
        mmproj_bytes=mmproj_bytes,
        mtp_bytes=mtp_bytes,
        buffers_bytes=sum_buffers(stored),
        kv_cache_bytes=allocation.kv_bytes,
        state_bytes=allocation.state_bytes,
        kv_bytes_per_token=count_growth(groups, request.kv_dtype),
        window_bytes=count_windows(groups, request.kv_dtype),
        weights=weights,
        caches=groups,
        contexts=(),
        request=request,
        formats=list_formats(count, format, weights),
        draft=drafted and describe_draft(drafted, rules, request),
        draft_caches=list_cache_groups(drafted.model) if drafted else (),
        fit=fit,
        available=None
        if available_kv is None
        else measure_available(deployment, check_size("available_kv", available_kv, limit=10**15)),
        warnings=tuple(warnings),
        notes=(
            *allocation.notes,
            *((support.note,) if support.is_supported and support.note else ()),
            *list_storage_notes(stored, format),
            *mtp_notes,
            *list_device_notes(device),
        ),
    )
    top = max(limit or 131_072, length)
    contexts = {length, top, *(n for n in (4096, 16_384, 65_536, 262_144, 1_048_576) if n < top)}
    return replace(memory, contexts=tuple(map(memory.at, sorted(contexts))))
