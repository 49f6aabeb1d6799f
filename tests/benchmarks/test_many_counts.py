"""Counts of many sizes at once, as ratios within one run: sweeps and DataFrames against formulas and scalar counts."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import paramcount as pc
from paramcount.zoo import count_model

ROUNDS = 3
N = 10_000_000
MODEL = pc.load("llama-3.1-8b")
SIZES = {"n_layers": range(1, 101), "d_model": range(128, 12_801, 128), "d_ff": range(128, 128_001, 128)}


def time_call(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def sweep_totals() -> Any:
    """The totals of ten million configurations of Llama, in one array."""
    totals, start = np.empty(N, dtype="int64"), 0
    for arrays in pc.sweep(MODEL, SIZES, columns=["total"]).arrays():
        stop = start + len(arrays["total"])
        totals[start:stop] = arrays["total"]
        start = stop
    assert start == N
    return totals


def make_flat_sizes() -> tuple[Any, Any, Any]:
    """The same sizes, one value per configuration."""
    grids = np.meshgrid(*(np.asarray(values, dtype="int64") for values in SIZES.values()), indexing="ij")
    n_layers, d_model, d_ff = (grid.reshape(-1) for grid in grids)
    return n_layers, d_model, d_ff


def closed_formula(n_layers: Any, d_model: Any, d_ff: Any) -> Any:
    """Llama's total, written by hand for 32 heads of 128 and 8 KV heads, not tied."""
    attention = 2 * d_model * 32 * 128 + 2 * d_model * 8 * 128
    return 2 * 128256 * d_model + n_layers * (attention + 3 * d_model * d_ff + 2 * d_model) + d_model


def read_status(field: str) -> int:
    """A line of /proc/self/status in KiB."""
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(rf"{field}:\s*(\d+)", text)
    assert found
    return int(found[1])


def test_a_sweep_of_ten_million_configurations_against_the_closed_formula(benchmark: Any) -> None:
    """The goal is 3 times at most, and 20 bytes of extra memory per configuration at most."""
    sweep_totals()
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # resets the peak
    before = read_status("VmRSS")
    totals = sweep_totals()
    benchmark.extra_info["extra bytes each"] = round((read_status("VmHWM") - before) * 1024 / N, 1)
    flat = make_flat_sizes()
    assert np.array_equal(totals, closed_formula(*flat))
    pairs = [(time_call(sweep_totals), time_call(lambda: closed_formula(*flat))) for _ in range(ROUNDS)]
    benchmark.extra_info["time ratio"] = round(statistics.median(a / b for a, b in pairs), 2)
    benchmark.pedantic(sweep_totals, rounds=1)
    print(f"\n{benchmark.name}: {benchmark.extra_info}")


def test_a_sweep_against_a_loop_of_scalar_counts(benchmark: Any) -> None:
    n = 1000

    def loop() -> None:
        for n_layers in range(1, n + 1):
            count_model(pc.what_if(MODEL, n_layers=n_layers))

    pairs = [(time_call(sweep_totals) / N, time_call(loop) / n) for _ in range(ROUNDS)]
    benchmark.extra_info["scalar loop in sweeps"] = round(statistics.median(b / a for a, b in pairs))
    benchmark.pedantic(loop, rounds=1)
    print(f"\n{benchmark.name}: {benchmark.extra_info}")


@pytest.mark.parametrize("distinct", [64, 100_000], ids=lambda n: f"{n:,} vocabulary sizes")
def test_a_million_rows_of_a_frame_against_a_loop_of_scalar_counts(benchmark: Any, distinct: int) -> None:
    rng = np.random.default_rng(0)
    n = 1_000_000
    heads = rng.integers(4, 64, n)
    frame = pandas.DataFrame(
        {
            "num_hidden_layers": rng.integers(1, 100, n),
            "hidden_size": heads * 128,
            "num_attention_heads": heads,
            "intermediate_size": rng.integers(1, 200, n) * 128,
            "vocab_size": 1000 + rng.integers(0, distinct, n),
            "tie_word_embeddings": rng.random(n) < 0.5,
        }
    )
    rows: list[dict[str, Any]] = [
        {"model_type": "llama", **{str(key): value for key, value in row.items()}}
        for row in frame[:1000].to_dict("records")
    ]

    def loop() -> list[int]:
        return [pc.count(row).total for row in rows]

    assert pc.count_frame(frame[:1000], "llama")["total"].tolist() == loop()
    whole, part = time_call(lambda: pc.count_frame(frame, "llama")) / n, time_call(loop) / len(rows)
    benchmark.extra_info["rows per second"] = round(1 / whole)
    benchmark.extra_info["scalar loop in frames"] = round(part / whole, 1)
    benchmark.pedantic(loop, rounds=1)
    print(f"\n{benchmark.name}: {benchmark.extra_info}")
