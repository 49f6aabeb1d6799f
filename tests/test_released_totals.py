"""Every zoo entry against what is published of its released files: totals of indices and of the Hub, to the last digit.

A difference is listed here with its reason, or it is an error.
"""

from __future__ import annotations

import csv
import re

import paramcount as pc
import paramcount.zoo as zoo

ALL_DIGITS = re.compile(r"\d{1,3}(,\d{3}){2,}|\d{7,}")
RELEASED = ("checkpoint", "total", "unspecified")
EXPLAINED = {  # {id: published − total}
    # Fewer than the reference builds: the routing biases of 27 layers of 64 experts, the scales of the vision encoder
    "ernie-4.5-21b-a3b": -27 * 64,
    "nemotron-3-nano-omni-30b-a3b": -32 * 2 * 1280,
    "wizardcoder-15b": -2_127_872,  # unexplained, as its entry says
    # Routing biases, which are no parameters
    "glm-4.5v": 45 * 128,
    "kimi-linear-48b-a3b": 26 * 256,
    # CLIP's own patch embedding, which nothing reads
    "deepseek-ocr": 1024 * 3 * 14 * 14,
    # The protein encoder's learned positions, which rotary ones replace, and the frequencies of its layers
    "evolla-10b": 1026 * 1280 + 33 * 32,
    # Scales of the INT4 experts, shapes of two numbers as the Hub counts them, routing biases
    "kimi-k2.5": 31_708_938_240 + 69_120 * 16 + 60 * 384,
    # MTP layers; some with routing biases, MiMo's with FP8 scales and 576 values that are unexplained
    "ernie-4.5-300b-a47b": 989_888_512,
    "k-exaone-236b-a23b": 528_513_280 + 47 * 128,
    "longcat-flash": 1_197_899_776 + 28 * 768,
    "mimo-v2-flash": 987_820_224 + 18_716_736 + 47 * 256 + 576,
    "qwen3-next-80b-a3b": 1_650_471_424,
    "qwen3.5-0.8b": 20_452_864,
    "qwen3.5-2b": 60_828_160,
    "qwen3.5-4b": 120_599_552,
    "qwen3.5-9b": 243_290_624,
    "qwen3.5-27b": 424_699_392,
    "qwen3.5-35b-a3b": 844_640_768,
    "qwen3.5-122b-a10b": 2_523_679_232,
    "qwen3.5-397b-a17b": 6_595_568_128,
}


def read_totals() -> dict[str, int]:
    """{id: total} of the zoo's table, which tests/test_zoo.py compares with the counts."""
    with (zoo.CONFIGS / "zoo.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: int(row["total"]) for row in csv.DictReader(file) if row["total"]}


def list_differences() -> dict[str, int]:
    """{id: a published figure minus the total} of those that are neither the total nor the contents of the files."""
    differences = {}
    for id, total in read_totals().items():
        for figure in zoo.load_entry(id).published:
            text = str(figure.value)
            if figure.what not in RELEASED or not ALL_DIGITS.fullmatch(text):
                continue
            published = int(text.replace(",", ""))
            if published != total and published != pc.count(id).checkpoint:
                differences[id] = published - total
    return differences


def test_every_published_total_of_released_files_is_counted_or_its_difference_is_explained() -> None:
    assert list_differences() == EXPLAINED
