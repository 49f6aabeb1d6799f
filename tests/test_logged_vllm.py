"""What vLLM logs when it starts: weights, tokens, blocks, activations, and whether it starts at all.

Sizes of memory are those that CUDA reports, as in the log. A printed size of the cache stands for all bytes that print
like it: the fewest that give the figure are taken, if they do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache

import pytest

from paramcount.costs.available import measure_available
from paramcount.costs.caches import list_layer_caches
from paramcount.costs.deployment import Deployment
from paramcount.costs.devices import NO_DEVICE, make_device
from paramcount.costs.engines.vllm import VLLM
from paramcount.costs.fit import make_parallelism
from paramcount.costs.memory import Memory, measure_memory
from paramcount.costs.sharding import StoredRows, find_shape
from paramcount.zoo import count_model
from tests.logged import FULFILLED, LoggedFigure, agrees, find_share, load_logged, read_logged

ROWS = read_logged("vllm")
GIB = 2**30
GIVEN = ("available_kv", "kv_tokens", "cuda_graphs_gib")  # what the log prints, and a user does not pass
OUTCOMES = {id: row for id, row in ROWS.items() if row.kind == "outcome"}
FIGURES = {id: row for id, row in ROWS.items() if row.kind != "outcome"}


@cache
def measure(model: str, arguments: str) -> Memory:
    """`memory` as a user would call it."""
    given = json.loads(arguments)
    tp, pp, ep = (given.pop(name, None) for name in ("tp", "pp", "ep"))
    gpu, size, utilization = (given.pop(name, None) for name in ("gpu", "memory", "utilization"))
    number, device = tp or 1, None
    if gpu or size:
        found, device = make_device(gpu, size and read_size(size), None, utilization)
        number = max(number, found)
    parallel = make_parallelism(number, tp, pp, ep, "vllm")
    return measure_memory(load_logged(model), **given, engine="vllm", device=device, parallel=parallel)


def read_size(text: str | int) -> int:
    """Bytes of "79.22 GiB"."""
    return text if isinstance(text, int) else int(float(text.removesuffix(" GiB")) * GIB)


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
    memory, loaded = measure(model, arguments), load_logged(model)
    given = json.loads(arguments)
    parallel = make_parallelism(given.get("tp", 1), given.get("tp"), None, None, "vllm")
    shape = find_shape(count_model(loaded).sizes)
    return Deployment(
        loaded, StoredRows(()), list_layer_caches(loaded), shape, VLLM, memory.request, NO_DEVICE, parallel,
        memory.context_limit,
    )  # fmt: skip


def compute(row: LoggedFigure) -> float:
    """What paramcount says in place of the figure."""
    text = json.dumps({name: value for name, value in row.arguments.items() if name not in GIVEN})
    if row.figure in ("weights_gib", "activation_gib", "available_gib"):
        return compute_profile(row, text)
    if row.figure == "block_size":
        note = next(note for note in measure(row.model, text).notes if "blocks of" in note)
        return int(re.findall(r"[\d,]+", note)[0].replace(",", ""))

    def read(available: int, figure: str = row.figure) -> float:
        cache = measure_available(deploy(row.model, text), available)
        return {
            "blocks": int(cache.details[0].partition(" ")[0].replace(",", "")),
            "kv_tokens": cache.tokens,
            "concurrency": cache.concurrency,
            "max_len_estimate": cache.longest_context or 0,
            "needed_gib": cache.needed_bytes / GIB,
        }[figure]

    if row.figure == "needed_gib":
        return read(GIB)
    low, high = list_possible(row)
    if "kv_tokens" in row.arguments:  # all sizes of the cache that hold so many tokens
        tokens = row.arguments["kv_tokens"]
        low = find_first(lambda n: read(n, "kv_tokens") >= tokens, low, high)
        high = find_first(lambda n: read(n, "kv_tokens") > tokens, low, high) - 1
    value, digits = float(row.value.replace(",", "")), len(row.value.partition(".")[2])
    return read(find_first(lambda n: round(read(n), digits) >= value, low, high))


def compute_profile(row: LoggedFigure, text: str) -> float:
    """GiB on the first GPU."""
    given = row.arguments
    if "gpu" not in given and "memory" not in given:
        text = json.dumps({**given, "gpu": f"{given.get('tp', 1)}xH100"})
    fit = measure(row.model, text).fit
    assert fit is not None
    share = fit.shares[0]
    if row.figure == "weights_gib":
        return share.weights_bytes / GIB
    if row.figure == "activation_gib":
        # Versions from 0.26 on add their estimate of CUDA graphs.
        return dict(share.overhead.items)["peak activation"] / GIB + float(row.arguments.get("cuda_graphs_gib", 0))
    budget = fit.memory_bytes * fit.utilization
    return (budget - share.weights_bytes - share.overhead.usual) / GIB


@pytest.mark.parametrize("id", [id for id, row in FIGURES.items() if not row.reason])
def test_the_figure_of_the_log_is_met(id: str) -> None:
    row = ROWS[id]
    found = compute(row)
    assert agrees(row, found), f"{found} is not {row.value}"


# Weights in BF16 of which the log prints tenths of a MiB, so that norms, scales and what PyTorch rounds up count, too.
EXACT = (
    "log-01-qwen3-4b", "log-02-qwen3-30b-a3b-instruct-2507", "log-05-qwen3-32b", "log-17-x", "log-31-deepseek-r1-14b",
    "log-19-meta-llama-3.1-8b-instruct", "log-25-meta-llama-3-8b-instruct", "log-65-qwen3-vl-embedding-2b",
)  # fmt: skip


@pytest.mark.parametrize("id", EXACT)
def test_weights_are_exact_to_the_last_digit(id: str) -> None:
    row = ROWS[f"{id}-weights_gib"]
    assert f"{compute(row):.4f}" == row.value


@pytest.mark.parametrize("id", [id for id, row in FIGURES.items() if row.reason])
def test_a_figure_with_a_reason_is_not_met(id: str) -> None:
    assert not agrees(ROWS[id], compute(ROWS[id]))


@pytest.mark.parametrize("aside", [False, True])
def test_nine_tenths_of_the_figures_are_met(aside: bool) -> None:
    assert find_share(ROWS.values(), aside=aside) >= FULFILLED
    exact = [row for row in FIGURES.values() if row.kind == "arithmetic" and row.aside == aside]
    assert sum(not row.reason for row in exact) >= FULFILLED * len(exact)


@cache
def find_verdict(id: str) -> str:
    row = OUTCOMES[id]
    fit = measure(row.model, json.dumps(row.arguments)).fit
    assert fit is not None
    return fit.verdict


def test_outcomes_are_called_as_they_were() -> None:
    verdicts = {id: find_verdict(id) for id in OUTCOMES}
    worked = [verdicts[id] for id, row in OUTCOMES.items() if row.value == "worked"]
    failed = [verdicts[id] for id, row in OUTCOMES.items() if row.value == "out of memory"]
    assert len(worked) >= 8 <= len(failed)
    assert worked.count("fits") >= 0.8 * len(worked)
    assert failed.count("does not fit") >= 0.6 * len(failed)
    assert "fits" not in [verdicts[id] for id, row in OUTCOMES.items() if row.value != "worked" and not row.reason]
    assert [*worked, *failed].count("too close to call") <= 0.15 * len(verdicts)


@pytest.mark.parametrize("id", [id for id, row in OUTCOMES.items() if not row.reason])
def test_a_run_out_of_memory_is_not_called_fits_nor_one_that_worked_does_not_fit(id: str) -> None:
    assert find_verdict(id) != {"worked": "does not fit", "out of memory": "fits"}[OUTCOMES[id].value]
