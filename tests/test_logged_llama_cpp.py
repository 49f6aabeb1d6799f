"""What llama.cpp allocates equals what its logs print; each figure has its source."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from paramcount.api import memory
from paramcount.costs.caches import CacheGroup
from paramcount.costs.engines.engine import Share
from paramcount.costs.engines.llama_cpp import LLAMA_CPP
from paramcount.costs.engines.llama_cpp_cells import count_cell_bytes, count_cells
from paramcount.costs.memory import Memory
from tests.logged import FULFILLED, LoggedFigure, agrees, find_share, load_logged, read_logged

LOGGED = read_logged("llama_cpp")
MIB = 2**20
WHOLE_GPU = 10**15  # bytes: figures that do not depend on the GPU


@cache
def measure(model: str, arguments: str, engine: str = "llama.cpp") -> Memory:
    given: dict[str, Any] = json.loads(arguments)
    if "gpu" not in given:
        given.setdefault("memory", WHOLE_GPU)
    return memory(load_logged(model), engine=engine, **given)


def find_share_on(result: Memory, place: str) -> Share:
    assert result.fit is not None
    device = None if place == "cpu" else int(place.removeprefix("gpu"))
    return next(share for share in result.fit.shares if share.device == device)


def count_windows(result: Memory, *, windows: bool) -> tuple[int, int]:
    """(cells of each sequence that all layers share or each has, bytes of all layers) with windows, or without."""
    options = LLAMA_CPP.choose_windows(result.caches, result.request)
    groups: list[CacheGroup] = [g for g in result.caches if not g.is_state and (g.longest is not None) == windows]
    streams = 1 if options.kv_unified else result.request.batch
    cells = count_cells(groups[0], result.request, options)
    size = sum(g.layers * count_cells(g, result.request, options) * count_cell_bytes(g, result.request, options.mla)
               for g in groups)  # fmt: skip
    return cells // streams, size


def count_figure(row: LoggedFigure) -> float:
    """What paramcount says for the figure: cells, or MiB."""
    result = measure(row.model, json.dumps(row.arguments, sort_keys=True))
    figure, _, place = row.figure.rpartition("_")
    if row.figure in ("cells", "window_cells"):
        return count_windows(result, windows=row.figure == "window_cells")[0]
    if row.figure in ("kv", "state", "context"):
        sizes = {"kv": result.kv_cache_bytes, "state": result.state_bytes}
        both = (result.kv_cache_bytes + result.state_bytes) // MIB  # without a fraction in the breakdown
        return sizes[row.figure] / MIB if row.figure in sizes else both
    if figure in ("kv_full", "kv_window") or row.figure in ("kv_full", "kv_window"):
        return count_windows(result, windows="window" in row.figure)[1] / MIB
    if row.figure == "output":
        return dict(find_share_on(result, "cpu").overhead.items)["output buffer"] / MIB
    share = find_share_on(result, place)
    if figure == "compute":
        return dict(share.overhead.items)["compute buffer"] / MIB
    if figure == "weights":  # the encoders are a model of their own
        return (share.weights_bytes - (result.mmproj_bytes if place == "gpu0" else 0)) / MIB
    return {"kv": share.kv_cache_bytes, "state": share.state_bytes}[figure] / MIB


@pytest.mark.parametrize("name", [name for name, row in LOGGED.items() if row.kind != "outcome"])
def test_a_figure_is_what_the_log_prints(name: str) -> None:
    row = LOGGED[name]
    found = count_figure(row)
    assert agrees(row, found) == (not row.reason), f"{found} instead of {row.value}"


def test_most_figures_are_met_in_both_parts() -> None:
    assert find_share(LOGGED.values(), aside=False) >= FULFILLED
