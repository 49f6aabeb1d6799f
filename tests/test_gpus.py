"""The memory of every GPU is on one basis: the total that software can address, as the driver reports it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from paramcount.costs.gpus import PATH, find_gpu
from paramcount.formats.strict_yaml import read_yaml

GPUS: list[dict[str, Any]] = read_yaml(PATH)["gpus"]
BASES = ("driver", "CUDA", "operating system", "GiB", "GiB with ECC")


def find_share(gpu: dict[str, Any]) -> float:
    """The memory, as a share of the maker's figure in GiB."""
    share: float = gpu["memory_bytes"] / (gpu["memory_gb"] * 2**30)
    return share


def test_the_makers_gigabytes_are_gib_in_every_row() -> None:
    # NVIDIA's GDDR6 stores its error correction in the memory: 15/16 are left, as nvidia-smi prints for T4, A10 and L4
    assert {gpu["memory_basis"] for gpu in GPUS} <= set(BASES)
    for gpu in GPUS:
        share, basis = find_share(gpu), gpu["memory_basis"]
        if basis.startswith("GiB"):
            assert share == (15 / 16 if basis == "GiB with ECC" else 1), gpu["name"]
        assert 0.936 < share <= 1, gpu["name"]


@pytest.mark.parametrize("gpu", [gpu for gpu in GPUS if gpu["memory_basis"] == "driver"], ids=lambda gpu: gpu["name"])
def test_a_source_prints_the_drivers_total(gpu: dict[str, Any]) -> None:
    texts = " ".join(source["says"] for source in gpu["sources"])
    totals = [int(n) * 2**20 for n in re.findall(r"(\d+) ?MiB", texts)] + [
        int(n) for n in re.findall(r"\d{10,}", texts)
    ]
    assert gpu["memory_bytes"] in totals


def test_boards_with_the_same_memory_have_the_same_figure() -> None:
    # 24576 MiB and twice 24564 MiB by nvidia-smi
    sizes = [find_gpu(name).memory_bytes for name in ("RTX 3090", "RTX 3090 Ti", "RTX 4090")]
    assert sizes == [24576 * 2**20, 24564 * 2**20, 24564 * 2**20]
