"""What a user asks of an engine: the lengths, the dtypes and the number of sequences that are cached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcount.costs.caches import CacheGroup
from paramcount.costs.devices import check_size
from paramcount.costs.dtypes import KVDtype, parse_kv_dtype
from paramcount.costs.engines import ENGINES
from paramcount.costs.engines.engine import Engine
from paramcount.costs.engines.records import CacheRequest
from paramcount.counting.sum_weights import list_flows
from paramcount.errors import ParamcountError, count_noun, make_choice_error, make_printable
from paramcount.flow.positions import count_positions
from paramcount.sizes.setting_fields import list_settings
from paramcount.tracing.run import check_length
from paramcount.zoo import Model

DEFAULT_CONTEXT = 8192  # tokens; fewer if the model takes fewer
# Qwen3.5 and Nemotron-H; vLLM 0.33.0, model_executor/models/config.py
STATE_DTYPE_KEYS, STATE_DTYPES = ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"), ("float32", "bfloat16", "float16")


def find_engine(name: object) -> Engine:
    """Raises: ParamcountError for an unknown engine."""
    if name not in ENGINES:
        raise make_choice_error(name, ENGINES, where="engine")
    return ENGINES[str(name)]


def make_request(
    model: Model,
    groups: tuple[CacheGroup, ...],
    *,
    context: object,
    batch: object,
    kv_dtype: object,
    state_dtype: object,
    source: object,
    options: Mapping[str, object],
) -> CacheRequest:
    """What a model caches.

    Raises: ParamcountError for sizes that are not positive integers, for an unknown dtype, and for a source that
    nothing caches.
    """
    request = CacheRequest(
        default_context(model) if context is None else check_size("context", context),
        check_size("batch", batch),
        parse_kv_dtype(kv_dtype),
        None if source is None else check_size("source", source),
        state_dtype=None if state_dtype is None else parse_kv_dtype(state_dtype, where="state_dtype"),
        config_state_dtype=find_state_dtype(model),
        reference=model.reading.reference,
        options=options,
    )
    if source is not None and not any(group.reads_source for group in groups):
        raise ParamcountError(f"= {source}, but {model.id} has no encoder whose output it caches", where="source")
    if request.source is None and any("source" in (group.stream, *group.front) for group in groups):
        request = request._replace(source=request.context)
    return request


def find_state_dtype(model: Model) -> KVDtype | None:
    """The dtype of recurrent states that the config names, which vLLM follows; None if it names none."""
    document = model.reading.document or {}
    sections = [section for section in (document.get("text_config"), document) if isinstance(section, Mapping)]
    named = (section.get(key) for section in sections for key in STATE_DTYPE_KEYS)
    language = getattr(model.sizes, "language", None) or model.sizes
    name = next((name for name in named if name in STATE_DTYPES), language.state_dtype)
    return None if name is None else parse_kv_dtype(name)


def find_longest_context(model: Model) -> int | None:
    """The most tokens that a model takes: of its position embedding, or as published; None if unknown."""
    out, _ = next(iter(list_flows(model.sizes, model.reading.head)))
    limits = [count_positions(out), getattr(model.sizes, "n_positions", None), model.context_length]
    return min((n for n in limits if type(n) is int), default=None)


def default_context(model: Model) -> int:
    """The context length if none is given."""
    return min(DEFAULT_CONTEXT, find_longest_context(model) or DEFAULT_CONTEXT)


def warn_request(model: Model, groups: tuple[CacheGroup, ...], request: CacheRequest) -> Iterator[str]:
    """Warnings about a context that is longer than published, and about caches whose length is unknown.

    Raises: ParamcountError for a context that is longer than the position embedding.
    """
    yield from check_length(model, request.context)
    if request.source is None:
        streams = {group.stream: group.kind or "attention" for group in groups if group.stream not in ("tokens", "")}
        for name, kind in streams.items():
            yield f"the cache of {kind} is not included: its length, the number of {name} (source), is not given"


def warn_ignored_window(model: Model, groups: tuple[CacheGroup, ...]) -> list[str]:
    """A warning if a config.json states a window that the model does not read: DynamicCache of transformers reads it
    unless the config has types of layers, and then forgets tokens that the masks show."""
    section = type(model.sizes).section
    key = f"{section}.sliding_window" if section else "sliding_window"
    n = model.reading.unread.get(key)
    is_read = any("sliding_window" in setting.names for setting in list_settings(type(model.sizes)).values())
    caches_all = any(group.grows for group in groups) and not any(group.longest for group in groups)
    if type(n) is not int or n < 1 or is_read or not caches_all:
        return []
    kept = f"the KV cache of transformers may keep only {count_noun(n - 1, 'token')}"
    return [
        f"ignored {make_printable(key)} = {n:,}: every layer of {model.reading.reference} sees all tokens, but {kept}"
    ]
