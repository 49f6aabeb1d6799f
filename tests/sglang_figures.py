"""The figures of SGLang's logs, as paramcount has them."""

from __future__ import annotations

from math import prod

from paramcount.costs.caches import CacheGroup
from paramcount.costs.engines.sglang.engine import SGLANG, divide_requests
from paramcount.costs.engines.sglang.pools import SglangOptions, count_index_bytes, make_pools
from tests.logged import GIB, LoggedFigure, measure


def count_figure(engine: str, row: LoggedFigure) -> float:
    """What paramcount says for the figure: tokens or GiB."""
    given = dict(row.arguments)
    if row.figure == "kv_tokens":
        given["available_kv"] = int(given.pop("available_gib") * GIB)
    result = measure(engine, row.model, given)
    request = result.request._replace(tp=given.get("tp", 1))
    if result.available is not None:
        return result.available.tokens
    assert result.fit is not None
    share = result.fit.shares[0]
    if row.figure == "weights_gib":
        return share.weights_bytes / GIB
    if row.figure == "kv_gib":
        return share.kv_cache_bytes / GIB
    options = SglangOptions(**request.options)
    request = divide_requests(request, options)
    if row.figure in ("ssm_gib", "conv_gib"):
        states = [g for g in result.caches if g.is_state and g.is_convolution == (row.figure == "conv_gib")]
        return SGLANG.count_state_bytes(states, request) * (options.max_mamba_cache_size + 1) / GIB
    pools = make_pools(result.caches, request, options)
    if row.figure == "swa_tokens":
        return pools.count_window_tokens(request.context)
    size, groups = share.kv_cache_bytes, [group for group in result.caches if not group.is_state]
    if row.figure.startswith("swa_"):
        groups = [group for group in groups if group.longest]
        size = (pools.count_window_tokens(request.context) + pools.page) * pools.window_bytes
    if row.figure.startswith("full_"):
        groups = [group for group in groups if not group.longest]
        size = (request.context + pools.page) * pools.full_bytes
    if row.figure == "latent_gib":
        indexed = sum(group.layers * count_index_bytes(prod(group.shapes[2])) for group in groups)
        return (size - (request.context + pools.page) * indexed) / GIB
    if row.figure.startswith("draft_"):
        size -= count_without_draft(engine, row)
    if row.figure == "draft_kv_gib":
        return size / GIB
    first, second = (sum(count_part(group, i) for group in groups) for i in (0, 1))
    part = first if row.figure.endswith("k_gib") else second
    return size * part / (first + second) / GIB


def count_without_draft(engine: str, row: LoggedFigure) -> int:
    given: dict[str, object] = row.arguments["engine_options"]
    options = {name: value for name, value in given.items() if name != "speculative_algorithm"}
    result = measure(engine, row.model, row.arguments | {"engine_options": options})
    assert result.fit is not None
    return result.fit.shares[0].kv_cache_bytes


def count_part(group: CacheGroup, i: int) -> int:
    return group.layers * prod(group.shapes[i])
