"""A fused matrix is listed once: as the parts that people know, each with its share of the work."""

from __future__ import annotations

import csv
import io

import pytest

import paramcount as pc
from paramcount.tracing.fused import split_fused
from paramcount.tracing.render import build_table
from tests.running import Runner


def list_names(id: str) -> list[str]:
    return [row[0].strip() for row in build_table(pc.trace(id)).rows]


@pytest.mark.parametrize(
    ("id", "fused", "parts"),
    [
        ("gpt2-small", "q, k and v", ["queries", "keys", "values"]),
        ("phi-3-mini", "gate, up", ["gate", "up"]),
        ("mamba-130m", "input, gate", ["input", "gate"]),
    ],
)
def test_a_fused_matrix_is_not_listed_beside_its_parts(id: str, fused: str, parts: list[str]) -> None:
    names = list_names(id)
    assert fused in [step.text for step in pc.trace(id).steps]
    assert fused not in names
    assert [names.count(part) for part in parts] == [1] * len(parts)


@pytest.mark.parametrize("id", ["gpt2-small", "phi-3-mini", "mamba-130m", "falcon-7b", "gpt-oss-20b"])
@pytest.mark.parametrize("full", [[], ["--full"]])
def test_the_flops_of_the_rows_sum_to_those_of_the_pass(id: str, full: list[str], run: Runner) -> None:
    done = run("trace", id, "--csv", *full)
    rows = csv.DictReader(io.StringIO(done.out))
    assert sum(int(row["flops"] or 0) for row in rows) == pc.trace(id).flops


def test_a_matrix_that_another_step_reads_as_well_stays() -> None:
    steps = list(pc.trace("gpt2-small").steps)
    fused = next(i for i, step in enumerate(steps) if step.text == "q, k and v")
    assert steps[fused] not in split_fused(steps)
    steps[-1] = steps[-1]._replace(reads=(*steps[-1].reads, fused))
    assert split_fused(steps) == steps
