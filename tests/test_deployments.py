"""What SGLang prints about pools of token slots: the same figures, to the last printed digit.

The rows are tests/data/deployments.csv, each with the issue or document that quotes the log.

For models outside the zoo the sizes are those of tests/data/deployment_configs.json. Where its source says that they
are those of the derivation in the CSV, a row tests the rules of the engine, and not the sizes.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from paramcount.api import load
from paramcount.costs.caches import CacheGroup, list_cache_groups
from paramcount.costs.dtypes import parse_kv_dtype
from paramcount.costs.engines import ENGINES
from paramcount.costs.engines.records import CacheRequest
from paramcount.costs.engines.vllm import PACKED_LATENT, count_token_bytes
from paramcount.costs.requests import find_state_dtype

DATA = Path(__file__).parent / "data"
GIB, MIB = 2**30, 2**20
with (DATA / "deployments.csv").open(encoding="utf-8", newline="") as file:
    ROWS = {row["id"]: row for row in csv.DictReader(file)}


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


@pytest.mark.parametrize("id", ROWS)
def test_the_figure_of_the_log_is_reproduced(id: str) -> None:
    assert reproduce_sglang(ROWS[id]) == ROWS[id]["value"]
