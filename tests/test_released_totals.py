"""Every zoo entry against what is published of its released files: totals of indices and of the Hub, to the last digit.

A difference is listed here with its reason, or it is an error.
"""

from __future__ import annotations

import csv
import re

import paramcount as pc
import paramcount.zoo as zoo
from tests.tables import read_table

ALL_DIGITS = re.compile(r"\d{1,3}(,\d{3}){2,}|\d{7,}")
RELEASED = ("checkpoint", "total", "unspecified")
EXPLAINED = dict(read_table("released_totals"))  # {id: published − total}


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


def test_a_difference_is_stated_in_a_note_of_its_entry() -> None:
    assert [id for id in EXPLAINED if not zoo.load_entry(id).notes] == []
