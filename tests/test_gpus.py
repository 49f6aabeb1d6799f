"""The memory of every GPU is on one basis, what the runtime reports to a program; each rate has a source."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest

from paramcount.costs.gpus import METAL_SHARES, PATH, find_gpu, find_metal_limit, list_gpus, normalize
from paramcount.formats.strict_yaml import read_yaml
from tests.running import Runner

GPUS: list[dict[str, Any]] = read_yaml(PATH)["gpus"]
BY_NAME = {gpu["name"]: gpu for gpu in GPUS}
UNITS = {"GiB": 2**30, "MiB": 2**20, "GB (2^30": 2**30, "KB": 1024, "kB": 1024}
PRINTED = re.compile(r"(\d+(?:\.\d+)?) ?(GiB|MiB|GB \(2\^30|[kK]B)")
UNITY = ("bf16", "fp16")  # which matrix units of most GPUs multiply equally fast


def list_reports(gpu: dict[str, Any]) -> list[int]:
    """The bytes that the sources of a row print."""
    says = " ".join(source["says"] for source in gpu["sources"])
    totals = [int(Fraction(number) * UNITS[unit]) for number, unit in PRINTED.findall(says)]
    return totals + [int(number) for number in re.findall(r"\d{10,}", says)]


def list_possible(gpu: dict[str, Any]) -> list[int]:
    """The bytes that a row may have by its basis."""
    match gpu["memory_basis"]:
        case "sibling":
            sibling = BY_NAME[gpu["memory_like"]]
            assert sibling["memory_basis"] == "runtime"
            return [sibling["memory_bytes"] * gpu["memory_gb"] // sibling["memory_gb"]]
        case "maker":
            return [gpu["memory_gb"] * 2**30]
        case "Metal":
            return [find_metal_limit(gpu["memory_gb"])] if gpu["name"].startswith("Apple") else []
        case _:  # of a card with two dies, each reports its half
            reports = list_reports(gpu)
            return [*reports, *(2 * n for n in reports if "MI250" in gpu["name"])]


def test_the_memory_is_what_a_source_prints_or_follows_from_the_basis() -> None:
    assert [gpu["name"] for gpu in GPUS if gpu["memory_bytes"] not in list_possible(gpu)] == []


def test_every_row_states_a_basis_and_no_program_gets_more_than_the_maker_builds_in() -> None:
    bases = {"runtime", "sibling", "Metal", "operating system", "maker"}
    assert {gpu["memory_basis"] for gpu in GPUS} == bases
    for gpu in GPUS:
        assert ("memory_like" in gpu) == (gpu["memory_basis"] == "sibling")
        # the least: 14.563 GiB of the 16 of a T4, whose memory stores its error correction
        assert gpu["memory_basis"] == "Metal" or 0.91 < gpu["memory_bytes"] / (gpu["memory_gb"] * 2**30) <= 1


# ---- Apple

# recommendedMaxWorkingSetSize as llama.cpp prints it, in 10^6 bytes
METAL_LOGS = {
    16: "12713.12", 18: "14302.25", 24: "19069.67", 32: "26800.60", 36: "30150.67", 48: "40200.90", 64: "55662.79",
    128: "115448.73",
}  # fmt: skip


def test_the_share_of_a_mac_is_what_metal_recommends() -> None:
    assert {gib: f"{find_metal_limit(gib) / 10**6:.2f}" for gib in METAL_LOGS} == METAL_LOGS


def test_the_largest_macs_report_464_gib_and_239_gb() -> None:
    # "MTL0: Apple M3 Ultra (475136 MiB, 475135 MiB free)"; https://github.com/raullenchai/Rapid-MLX/pull/183
    assert find_metal_limit(512) == 475136 * 2**20
    assert find_metal_limit(256) // 10**9 == 239


def test_an_apple_chip_is_named_with_its_memory() -> None:
    assert find_gpu("m4-max-64gb").memory_bytes == find_metal_limit(64)
    assert find_gpu("M4 Max") == find_gpu("m4-max-128gb") != find_gpu("m4-max-64gb")
    assert find_gpu("m4-max").name == "Apple M4 Max 128GB"
    assert all(gpu["memory_gb"] in METAL_SHARES for gpu in GPUS if gpu["memory_basis"] == "Metal")


def test_a_fit_says_how_much_of_a_shared_memory_counts(run: Runner) -> None:
    err = run("memory", "llama-3.1-8b", "--gpu", "m2-max-32gb").err
    assert "macOS lets the GPU use 26.8 GB of 32 GiB (older versions: 22.9 GB)" in err
    assert "iogpu.wired_limit_mb" in err
    assert "DGX Spark shares its memory with the CPU" in run("memory", "gpt2-small", "--gpu", "spark").err
    assert "shares" not in run("memory", "gpt2-small", "--gpu", "h100").err


# ---- names


NAMES = {
    "h100": "H100 SXM", "4090": "RTX 4090", "rtx4090": "RTX 4090", "mi300x": "Instinct MI300X",
    "a100": "A100 SXM4 80GB", "a100-80gb": "A100 SXM4 80GB", "a100-40gb": "A100 SXM4 40GB", "b200": "B200",
    "gb200": "GB200", "spark": "DGX Spark", "NVIDIA GeForce RTX 3090 Ti": "RTX 3090 Ti",
    "NVIDIA H100 80GB HBM3": "H100 SXM", "NVIDIA A100-SXM4-80GB": "A100 SXM4 80GB",
    "Tesla V100-SXM2-16GB": "V100 SXM2 16GB", "AMD Instinct MI300X": "Instinct MI300X",
    "7900xtx": "Radeon RX 7900 XTX", "strix halo": "Ryzen AI Max+ 395",
}  # fmt: skip


def test_a_gpu_is_found_by_what_people_and_drivers_call_it() -> None:
    assert {typed: find_gpu(typed).name for typed in NAMES} == NAMES


def test_no_two_gpus_share_a_name() -> None:
    names = [(normalize(name), gpu.name) for gpu in list_gpus() for name in {gpu.name, *gpu.aliases}]
    assert len(dict(names)) == len({*names})


# ---- rates


def test_every_gpu_states_its_bandwidth_and_most_a_16_bit_rate() -> None:
    without = {gpu.name for gpu in list_gpus() if not {*UNITY} & {*gpu.flops}}
    assert {name for name in without if not name.startswith("Apple")} == {"A10G", "DGX Spark"}
    assert all(gpu.bandwidth >= 60 * 10**9 for gpu in list_gpus())


@pytest.mark.parametrize("gpu", [pytest.param(gpu, id=gpu["name"]) for gpu in GPUS if "derived" in gpu])
def test_a_derived_rate_follows_from_a_rate_with_a_source(gpu: dict[str, Any]) -> None:
    rates = gpu["dense_flops"]
    like = BY_NAME.get(gpu.get("rates_like"))
    for dtype in gpu["derived"]:
        if like:
            assert "rates_like" not in like
            expected = rates["fp32"] * like["dense_flops"][dtype] / like["dense_flops"]["fp32"]
            assert rates[dtype] == pytest.approx(expected, rel=1e-3)
        elif dtype in UNITY and not {*gpu["derived"]} >= {*UNITY}:
            assert rates["bf16"] == rates["fp16"]
        elif dtype in UNITY and "int8" in rates and "int8" not in gpu["derived"]:
            assert 2 * rates[dtype] == rates["int8"]
        else:  # the source states operations per clock
            assert re.search(r"per clock|times dense", " ".join(source["says"] for source in gpu["sources"]))


def test_matrix_units_of_one_generation_are_to_fp32_as_nvidia_prints() -> None:
    # BF16 with FP32 accumulation: GeForce of Ampere, Ada and Blackwell twice FP32, RTX professional four times
    for gpu in list_gpus():
        if {"fp32", "bf16"} <= {*gpu.flops} and gpu.name.startswith("RTX"):
            factor = 2 if re.match(r"RTX [345]0[5-9]0", gpu.name) else 4
            assert gpu.flops["bf16"] / gpu.flops["fp32"] == pytest.approx(factor, rel=0.03), gpu.name
