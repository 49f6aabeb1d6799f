"""What engines print about real deployments: their policies give the same figures, to the last printed digit.

The rows are tests/data/deployments.csv, each with the issue or document that quotes the log.

For models outside the zoo the sizes are those of tests/data/deployment_configs.json. Where its source says that they
are those of the derivation in the CSV, a row tests the rules of the engine, and not the sizes.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from paramcount.api import load
from paramcount.costs.caches import CacheGroup, list_cache_groups
from paramcount.costs.dtypes import parse_kv_dtype
from paramcount.costs.engines import ENGINES
from paramcount.costs.engines.engine import CacheRequest
from paramcount.costs.engines.vllm import PACKED_LATENT, VLLM, CachePool, count_token_bytes
from paramcount.costs.requests import find_state_dtype

DATA = Path(__file__).parent / "data"
GIB, MIB = 2**30, 2**20
with (DATA / "deployments.csv").open(encoding="utf-8", newline="") as file:
    ROWS = {row["id"]: row for row in csv.DictReader(file)}

NOT_REPRODUCED = {
    "vllm-qwen3-235b-tp4": "the memory is one GPU's, the tokens are those of the GPU with the least memory",
    "vllm-qwen3.6-27b-tp2-b": "the excerpt shows neither the KV dtype nor whether a draft model was loaded",
}
# Logs of versions that print blocks // groups × block size; later ones print what sequences of max_model_len hold.
POOL_TOKENS = {"vllm-gpt-oss-120b", "vllm-gemma-4-31b", "vllm-kimi-k2-tp8"}


@cache
def load_model(name: str) -> Any:
    """A model of the zoo, a config of config_truth, or one of deployment_configs.json."""
    if name.endswith(".json"):
        return load(json.loads((DATA / "config_truth" / name).read_text(encoding="utf-8"))["config"])
    configs = json.loads((DATA / "deployment_configs.json").read_text(encoding="utf-8"))
    return load(configs[name]["config"] if name in configs else name)


def make_request(row: Mapping[str, str]) -> CacheRequest:
    """What the log caches."""
    keys, values = row["kv_dtype_k"] or "bf16", row["kv_dtype_v"]
    dtypes = {"float16": "f16", "fp8_ds_mla": "fp8"}
    dtype = ",".join(dtypes.get(name, name) for name in (keys, values or keys))
    cells = row["cells"] if row["cells"].isdecimal() else ""
    model = load_model(row["zoo_or_config"])
    return CacheRequest(
        int(row["context"] or cells or 8192),
        1,
        parse_kv_dtype(dtype),
        tp=int(row["tp"] or 1),
        config_state_dtype=find_state_dtype(model),
    )


def list_groups(row: Mapping[str, str]) -> list[CacheGroup]:
    """What the line of the log is about."""
    return list(list_cache_groups(load_model(row["zoo_or_config"])))


def plan(row: Mapping[str, str]) -> tuple[CachePool, CacheRequest]:
    request = make_request(row)
    if int(row["block_size"] or 16) in (16, 64, 128):  # those of hybrid models follow from their states
        request = request._replace(options={**request.options, "block_size": int(row["block_size"] or 16)})
    pool = VLLM.plan_pool(list_groups(row), request)
    assert pool is not None
    return pool, request


def list_available(row: Mapping[str, str]) -> tuple[int, int]:
    """The least and the most bytes that print like this."""
    text = row["available_gib"]
    decimals = len(text.partition(".")[2])
    slack = 0.5 / 10**decimals if decimals else 0
    return int((float(text) - slack) * GIB), int((float(text) + slack) * GIB)


def find_first(is_enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number from low to high that is enough; high if none is."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low


def reproduce_vllm(row: Mapping[str, str]) -> str:
    """Blocks, tokens or concurrency."""
    pool, request = plan(row)
    if row["quantity"] == "max_concurrency":
        blocks = re.search(r"(?:GPU|npu) blocks: (\d+)", row["quote"])
        tokens = re.search(r"KV cache size: ([\d,]+) tokens", row["quote"])
        assert blocks or tokens
        n = int(blocks[1]) if blocks else int(tokens[1].replace(",", "")) // 16 if tokens else 0
        return f"{n / pool.count_blocks(is_state=False):.2f}"
    groups = list_groups(row)

    def count(available: int) -> int:
        blocks = available // pool.block_bytes
        if row["quantity"] in ("blocks", "cpu_blocks"):
            return blocks
        if row["id"] in POOL_TOKENS:
            number = sum(map(pool.count_groups, pool.buckets))
            return blocks // number * min(bucket.block_size for bucket in pool.buckets)
        return ENGINES["vllm"].count_tokens(groups, request, available)

    value = int(row["value"].replace(",", ""))
    low, high = list_available(row)
    found = count(find_first(lambda n: count(n) >= value, low, high))
    return f"{found:,}" if "," in row["value"] else str(found)


def reproduce_sglang(row: Mapping[str, str]) -> str:
    """GiB of a pool of token slots; of one page more for packed latents."""
    request, (group,) = make_request(row), list_groups(row)
    slots = int(row["cells"])
    if "indexer" in row["id"]:
        size = (slots + 64) * group.layers * count_token_bytes(group, request)
    elif row["kv_dtype_k"] == "fp8_ds_mla":
        size = (slots + 64) * group.layers * PACKED_LATENT
    else:
        size = ENGINES["minimal"].allocate([group], request._replace(context=slots)).kv_bytes // 2
    return f"{size / GIB:.2f}"


@pytest.mark.parametrize("id", [id for id in ROWS if id not in NOT_REPRODUCED])
def test_the_figure_of_the_log_is_reproduced(id: str) -> None:
    row = ROWS[id]
    engines = {"vllm": reproduce_vllm, "vllm-ascend": reproduce_vllm, "sglang": reproduce_sglang}
    assert engines[row["engine"]](row) == row["value"]


def test_only_rows_that_exist_are_left_out() -> None:
    assert set(NOT_REPRODUCED) | POOL_TOKENS <= set(ROWS)
    assert len(ROWS) - len(NOT_REPRODUCED) >= 20
