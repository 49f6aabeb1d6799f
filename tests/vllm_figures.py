"""The figures of vLLM's logs, as paramcount has them.

A printed size of the cache stands for all bytes that print like it: the fewest that give the figure are taken, if they
do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache

from paramcount.costs.available import AvailableCache, measure_available
from paramcount.costs.caches import list_layer_caches
from paramcount.costs.deployment import Deployment
from paramcount.costs.devices import NO_DEVICE
from paramcount.costs.engines.vllm import VLLM
from paramcount.costs.fit import make_parallelism
from paramcount.costs.sharding import StoredRows, find_shape
from paramcount.zoo import count_model
from tests.logged import GIB, LoggedFigure, load_logged, measure

GIVEN = ("available_kv", "kv_tokens", "cuda_graphs_gib")  # what the log prints, and a user does not pass


def list_possible(row: LoggedFigure) -> tuple[int, int]:
    """The least and the most bytes of the cache that print as in the row."""
    if "available_kv" not in row.arguments:
        return 1, 10**13
    text = row.arguments["available_kv"].removesuffix(" GiB")
    decimals = len(text.partition(".")[2])
    slack = 0.5 / 10**decimals if decimals else 0
    return max(1, int((float(text) - slack) * GIB)), int((float(text) + slack) * GIB)


def find_first(is_enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number from low to high that is enough; high if none is."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low


@cache
def deploy(model: str, arguments: str) -> Deployment:
    """Without weights."""
    given, loaded = json.loads(arguments), load_logged(model)
    memory = measure("vllm", model, given)
    parallel = make_parallelism(given.get("tp", 1), given.get("tp"), None, None, "vllm")
    shape = find_shape(count_model(loaded).sizes)
    return Deployment(
        loaded, StoredRows(()), list_layer_caches(loaded), shape, VLLM, memory.request, NO_DEVICE, parallel,
        memory.context_limit,
    )  # fmt: skip


def count_figure(engine: str, row: LoggedFigure) -> float:
    """What paramcount says for the figure: tokens, blocks or GiB."""
    given = {name: value for name, value in row.arguments.items() if name not in GIVEN}
    if row.figure in ("weights_gib", "activation_gib", "available_gib"):
        return count_profiled(engine, row, given)
    if row.figure == "block_size":
        note = next(note for note in measure(engine, row.model, given).notes if "blocks of" in note)
        return int(re.findall(r"[\d,]+", note)[0].replace(",", ""))
    deployment = deploy(row.model, json.dumps(given))
    if row.figure == "needed_gib":
        return measure_available(deployment, GIB).needed_bytes / GIB

    def read(available: int) -> float:
        return read_figure(measure_available(deployment, available), row.figure)

    low, high = list_possible(row)
    if "kv_tokens" in row.arguments:  # all sizes of the cache that hold so many tokens
        tokens = row.arguments["kv_tokens"]
        low = find_first(lambda n: measure_available(deployment, n).tokens >= tokens, low, high)
        high = find_first(lambda n: measure_available(deployment, n).tokens > tokens, low, high) - 1
    value, digits = float(row.value.replace(",", "")), len(row.value.partition(".")[2])
    return read(find_first(lambda n: round(read(n), digits) >= value, low, high))


def read_figure(cache: AvailableCache, figure: str) -> float:
    return {
        "blocks": int(cache.details[0].partition(" ")[0].replace(",", "")),
        "kv_tokens": cache.tokens,
        "concurrency": cache.concurrency,
        "max_len_estimate": cache.longest_context or 0,
    }[figure]


def count_profiled(engine: str, row: LoggedFigure, given: dict[str, object]) -> float:
    """GiB on the first GPU."""
    if "gpu" not in given and "memory" not in given:
        given = {**given, "gpu": f"{given.get('tp', 1)}xH100"}
    fit = measure(engine, row.model, given).fit
    assert fit is not None
    share = fit.shares[0]
    if row.figure == "weights_gib":
        return share.weights_bytes / GIB
    if row.figure == "activation_gib":
        # Versions from 0.26 on add their estimate of CUDA graphs.
        return dict(share.overhead.items)["peak activation"] / GIB + float(row.arguments.get("cuda_graphs_gib", 0))
    return (fit.memory_bytes * fit.utilization - share.weights_bytes - share.overhead.usual) / GIB
