"""What SGLang allocates equals what its logs print; each figure has its source."""

from __future__ import annotations

import json
from functools import cache
from math import prod
from typing import Any

import pytest

import paramcount.costs.fit as fitting
from paramcount.api import memory
from paramcount.costs.caches import CacheGroup
from paramcount.costs.devices import DOES_NOT_FIT, FITS
from paramcount.costs.engines.sglang.engine import SGLANG, divide_requests
from paramcount.costs.engines.sglang.pools import SglangOptions, make_pools
from paramcount.costs.memory import Memory
from tests.logged import FULFILLED, LoggedFigure, agrees, find_share, load_logged, read_logged

LOGGED = read_logged("sglang")
OUTCOMES = [row for row in LOGGED.values() if row.kind == "outcome"]
GIB = 2**30
WHOLE_GPU = 10**15  # bytes: figures that do not depend on the GPU


@cache
def measure(model: str, arguments: str) -> Memory:
    given: dict[str, Any] = json.loads(arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "find_fewest", lambda deployment: None)  # of GPUs that hold it, which no log prints
        return memory(load_logged(model), engine="sglang", **{"memory": WHOLE_GPU, **given})


def count_figure(row: LoggedFigure) -> float:
    """What paramcount says for the figure."""
    given = dict(row.arguments)
    if row.figure == "kv_tokens":
        given["available_kv"] = int(given.pop("available_gib") * GIB)
    result = measure(row.model, json.dumps(given, sort_keys=True))
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
    if row.figure == "swa_tokens":
        return make_pools(result.caches, request, options).count_window_tokens(request.context)
    size, groups = share.kv_cache_bytes, [group for group in result.caches if not group.is_state]
    if row.figure.startswith("swa_"):
        pools = make_pools(result.caches, request, options)
        groups = [group for group in groups if group.longest]
        size = (pools.count_window_tokens(request.context) + pools.page) * pools.window_bytes
    if row.figure.startswith("full_"):
        pools = make_pools(result.caches, request, options)
        groups = [group for group in groups if not group.longest]
        size = (request.context + pools.page) * pools.full_bytes
    if row.figure.startswith("draft_"):
        size -= count_without_draft(row)
    if row.figure == "draft_kv_gib":
        return size / GIB
    first, second = (sum(count_part(group, i) for group in groups) for i in (0, 1))
    part = first if row.figure.endswith("k_gib") else second
    return size * part / (first + second) / GIB


def count_without_draft(row: LoggedFigure) -> int:
    options = {
        name: value for name, value in row.arguments["engine_options"].items() if name != "speculative_algorithm"
    }
    result = measure(row.model, json.dumps(row.arguments | {"engine_options": options}, sort_keys=True))
    assert result.fit is not None
    return result.fit.shares[0].kv_cache_bytes


def count_part(group: CacheGroup, i: int) -> int:
    return group.layers * prod(group.shapes[i])


@pytest.mark.parametrize("name", [name for name, row in LOGGED.items() if row.kind != "outcome"])
def test_a_figure_is_what_the_log_prints(name: str) -> None:
    row = LOGGED[name]
    found = count_figure(row)
    assert agrees(row, found) is not bool(row.reason), f"{row.value} printed, {found} computed"


@pytest.mark.parametrize("aside", [False, True])
def test_most_figures_are_met(aside: bool) -> None:
    assert find_share(LOGGED.values(), aside=aside) >= FULFILLED


def find_verdicts(value: str) -> list[str]:
    """The answers for all runs that ended like this, unless there is a reason why they are wrong."""
    rows = [row for row in OUTCOMES if row.value == value and not row.reason]
    return [judge(row.model, json.dumps(row.arguments, sort_keys=True)) for row in rows]


@cache
def judge(model: str, arguments: str) -> str:
    fit = memory(load_logged(model), engine="sglang", **json.loads(arguments)).fit
    assert fit is not None
    return fit.verdict


def test_nothing_that_ran_out_of_memory_fits() -> None:
    verdicts = find_verdicts("out of memory")
    assert FITS not in verdicts
    assert DOES_NOT_FIT in verdicts


def test_most_of_what_worked_fits() -> None:
    verdicts = find_verdicts("worked")
    assert DOES_NOT_FIT not in verdicts
    assert verdicts.count(FITS) >= 0.8 * len(verdicts)
