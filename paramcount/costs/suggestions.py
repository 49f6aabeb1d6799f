"""What makes a deployment fit, the mildest change first. Each was measured as the command itself measures it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from paramcount.costs.deployment import Deployment
from paramcount.costs.dtypes import parse_kv_dtype
from paramcount.costs.fit import Fit, Suggestion, find_fewest, find_longest_context
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.errors import ParamcountError

SHORTEST_CONTEXT = 1024  # tokens; a shorter one is of little use
# {whether the weights are a GGUF file or the engine reads one: (dtype of the cache, dtypes of the weights)}
SMALLER: Mapping[bool, tuple[str, tuple[str, ...]]] = {
    False: ("fp8", ("fp8", "int8", "int4")),
    True: ("q8_0", ("q8_0", "q6_k", "q4_k_m")),
}
Store = Callable[[str], Sequence[StoredTensor]]  # a dtype of the weights -> how they are stored


def list_suggestions(fit: Fit, deployment: Deployment, store: Store, *, is_gguf: bool) -> tuple[Suggestion, ...]:
    """What makes it fit; for what fits already, a smaller KV cache if that allows a longer context."""
    kv_dtype, dtypes = SMALLER[is_gguf]
    has_cache = deployment.engine.quantises_cache and any(
        not group.is_state for _, groups in deployment.caches for group in groups
    )
    bits = deployment.request.kv_dtype.keys.count_bytes(32)
    if not (has_cache and deployment.engine.quantises_cache) or bits <= parse_kv_dtype(kv_dtype).keys.count_bytes(32):
        kv_dtype = ""
    if fit.fits:
        if not kv_dtype or fit.longest_context in (None, deployment.limit):
            return ()
        smaller = change(deployment, {"kv_dtype": kv_dtype}, store).measure()
        return (Suggestion({"kv_dtype": kv_dtype}, smaller.free_bytes, find_longest_context(smaller)),)
    candidates = list_candidates(fit, deployment.request.batch, deployment.request.context, kv_dtype, dtypes)
    found = [suggestion for options in candidates if (suggestion := attempt(deployment, options, store))]
    if not found:
        combined = combine(deployment.request.batch, kv_dtype, dtypes)
        tried = (attempt(deployment, options, store) for options in combined)
        found = [suggestion for suggestion in tried if suggestion][:1]
    offloads = ({"engine_options": options} for options in deployment.engine.list_offloads(deployment))
    found += [suggestion for options in offloads if (suggestion := attempt(deployment, options, store))]
    return (*found, *(() if fit.fewest_devices is None else suggest_devices(deployment)))


def list_candidates(
    fit: Fit, batch: int, context: int, kv_dtype: str, dtypes: Sequence[str]
) -> Iterator[dict[str, object]]:
    """Single changes, the mildest first."""
    if kv_dtype:
        yield {"kv_dtype": kv_dtype}
    if fit.largest_batch and fit.largest_batch < batch:
        yield {"batch": fit.largest_batch}
    if fit.longest_context and SHORTEST_CONTEXT <= fit.longest_context < context:
        yield {"context": fit.longest_context // SHORTEST_CONTEXT * SHORTEST_CONTEXT}
    for dtype in dtypes:
        yield {"dtype": dtype}


def combine(batch: int, kv_dtype: str, dtypes: Sequence[str]) -> Iterator[dict[str, object]]:
    """Changes together, for what no single one makes fit."""
    cache: dict[str, object] = {"kv_dtype": kv_dtype} if kv_dtype else {}
    for fewer in ({}, {"batch": 1}) if batch > 1 else ({},):
        for dtype in dtypes:
            yield {**cache, **fewer, "dtype": dtype}


def attempt(deployment: Deployment, options: Mapping[str, object], store: Store) -> Suggestion | None:
    try:
        changed = change(deployment, options, store).measure()
    except ParamcountError:  # llama.cpp does not support the model
        return None
    return Suggestion(options, changed.free_bytes) if changed.slack_bytes >= 0 else None


def change(deployment: Deployment, options: Mapping[str, Any], store: Store) -> Deployment:
    """The deployment that the same call with other options measures."""
    changed = deployment.change(context=options.get("context"), batch=options.get("batch"))
    if "engine_options" in options:
        added = {**changed.request.options, **options["engine_options"]}
        changed = changed._replace(request=changed.request._replace(options=added))
    if "kv_dtype" in options:
        changed = changed._replace(request=changed.request._replace(kv_dtype=parse_kv_dtype(options["kv_dtype"])))
    return changed._replace(rows=store(options["dtype"])) if "dtype" in options else changed


def suggest_devices(deployment: Deployment) -> Iterator[Suggestion]:
    fewest = find_fewest(deployment)
    if fewest is None:
        return
    options: dict[str, object] = {"tp": fewest.tp, "pp": fewest.pp}
    if deployment.parallel.ep > 1:
        options["ep"] = 1
    if deployment.device.is_gpu:
        options = {"gpu": f"{fewest.devices}x{deployment.device.name}", **options}
    yield Suggestion(options, deployment._replace(parallel=fewest).measure().free_bytes)
