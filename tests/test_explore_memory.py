"""What the page knows of memory: expressions that have the values of `paramcount memory`, on one of several GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

import paramcount as pc
from paramcount.costs.devices import Device, judge
from paramcount.costs.gpus import list_gpus
from paramcount.costs.requests import find_longest_context
from paramcount.explore.fitting import KV_DTYPES, export_choices, export_released_weights
from paramcount.explore.packings import FORMATS, Packings
from paramcount.explore.structures import export_structure
from paramcount.zoo import Model
from paramcount.zoo.what_if import change_sizes
from tests.structures import pick_structures
from tests.test_explore import evaluate, get_sizes

IDS = ["gpt2-small", "llama-3.1-8b", "gpt-oss-20b", "deepseek-v3", "mamba-130m", "t5-small", "gemma-3-27b"]
GPU = "8xH200 SXM"


@cache
def export(id: str) -> tuple[Model, Packings, dict[str, Any]]:
    model, packings = pc.load(id), Packings()
    return model, packings, export_structure(model, packings)


def share_weights(tensor: Mapping[str, Any], trees: list[Any], sizes: Mapping[str, int], dtype: int, gpus: int) -> int:
    """The bytes of a tensor on one of the GPUs, as the page computes them."""
    elements = evaluate(tensor["elements"], sizes)
    if dtype < len(tensor["widths"]) or not elements:
        n_bytes = elements * (tensor["widths"][dtype] if elements else 0)
    else:
        axes = {str(i): evaluate(n, sizes) for i, n in enumerate(tensor.get("stored", tensor["shape"]))}
        packing = trees[tensor["packings"][dtype - len(tensor["widths"])]]
        n_bytes = evaluate(tensor.get("files", tensor["copies"]), sizes) * evaluate(packing, axes)
    _, function, *inputs = tensor["shared"]
    values = [evaluate(n, {**sizes, "bytes": n_bytes, "gpus": gpus}) for n in inputs]
    return evaluate(trees[function], {str(i): n for i, n in enumerate(values)}) or 0


@pytest.mark.parametrize("gpus", [1, 2, 4])
@pytest.mark.parametrize("id", [*IDS, *pick_structures(every=40)])
def test_weights_and_caches_on_each_gpu_are_those_of_memory(id: str, gpus: int) -> None:
    model, packings, structure = export(id)
    sizes, trees = get_sizes(model, structure), packings.list_all()
    if evaluate(structure["sharing"], {**sizes, "gpus": gpus}) is not None:
        with pytest.raises(pc.ParamcountError, match="does not divide"):
            pc.memory(model, gpu=f"{gpus}xH100")
        return
    context, users = 1000, 3
    if (limit := find_longest_context(model)) is not None:
        context = min(context, limit)
    loaded = [tensor for tensor in structure["tensors"] if "shared" in tensor]
    for i, dtype in enumerate(("fp32", "bf16", *FORMATS)):
        for kv_dtype, kv_bytes in zip(("f32", "bf16", "fp8"), (4, 2, 1)):
            memory = pc.memory(
                model, dtype=dtype, kv_dtype=kv_dtype, context=context, batch=users, gpu=f"{gpus}xH100 SXM"
            )
            assert memory.fit is not None
            (share,) = memory.fit.shares
            weights = sum(share_weights(tensor, trees, sizes, i, gpus) for tensor in loaded)
            assert weights == share.weights_bytes, dtype
            if structure["caches"] is not None:
                values = {**sizes, "gpus": gpus, "users": users, "kv_bytes": kv_bytes, "context": context}
                assert evaluate(structure["caches"]["kv"], values) == share.kv_cache_bytes, kv_dtype
                assert evaluate(structure["caches"]["state"], values) == share.state_bytes, kv_dtype


def test_a_release_has_its_bytes_on_each_number_of_gpus() -> None:
    """gpt-oss has 64 heads, which 3 GPUs cannot share; kernels may pad its MXFP4 weights."""
    found = export_released_weights(pc.load("gpt-oss-20b"))
    assert found is not None
    memories = {n: pc.memory("gpt-oss-20b", gpu=f"{n}xH100 SXM").fit for n in (1, 2, 4, 8)}
    for n, share in enumerate(found["shares"], 1):
        assert (share is None) == (n not in memories), n
        if share is not None:
            fit = memories[n]
            assert fit is not None
            margin = -(-fit.memory_bytes // 10)
            assert [int(text) for text in share] == [fit.fullest.weights_bytes, fit.margin_bytes - margin]
    assert int(found["weights"]) == pc.memory("gpt-oss-20b").weights_bytes
    assert export_released_weights(pc.load("llama-3.1-8b")) is None


@pytest.mark.parametrize("id", ["gpt2-small", "bert-base-uncased", "opt-1.3b", "llama-3.1-8b", "mamba-130m"])
def test_the_limits_of_a_text_follow_its_sizes(id: str) -> None:
    model, _, structure = export(id)
    free = {path for path, *limits in structure["sizes"] if limits}
    for changes in ({}, {"n_positions": 4096}):
        if not changes.keys() <= free:
            continue
        changed = change_sizes(model, changes) if changes else model
        limit = evaluate(structure["limit"], {**get_sizes(model, structure), **changes})
        published = None if changes else model.context_length
        limits = [n for n in (limit, published) if n is not None]
        assert min(limits, default=None) == find_longest_context(changed)


def test_the_verdict_is_that_of_judge_on_both_sides_of_its_bounds() -> None:
    tree = export_choices()["verdict"]
    device = Device("", 10**6, 1000)
    overhead = device.assume_overhead()
    bounds = (10**6 - overhead.most, 10**6 - overhead.least)
    for needed in (n + i for n in bounds for i in (-1, 0, 1, 2)):
        values = {"needed": needed, "least": overhead.least, "most": overhead.most, "budget": 10**6}
        assert evaluate(tree, values) == {"verdict": judge(needed, overhead, 10**6)}


def test_every_gpu_has_the_memory_that_the_command_line_checks_against() -> None:
    gpus = {gpu["name"]: gpu for gpu in export_choices()["gpus"]}
    assert set(gpus) == {gpu.name for gpu in list_gpus()}
    for name in ("RTX 4090", "Apple M4 Max", "DGX Spark"):
        fit = pc.memory("gpt2-small", gpu=name).fit
        assert fit is not None
        assert gpus[name]["memory"] == fit.memory_bytes
        assert gpus[name]["overhead"]["usual"] == fit.overhead_bytes
        assert gpus[name]["overhead"]["most"] == fit.overhead_bytes + fit.margin_bytes


def test_the_dtypes_of_a_cache_have_whole_bytes() -> None:
    sizes = {dtype["name"]: dtype["bytes"] for dtype in export_choices()["kv_dtypes"]}
    assert sizes == {"bf16": 2, "fp8": 1, "int8": 1, "f32": 4}
    assert tuple(sizes) == KV_DTYPES
