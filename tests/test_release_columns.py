"""Where a user compares with the reference: differences, sweeps, frames and the page have `reference_total`."""

from __future__ import annotations

import json
from typing import Any

import pandas
import pytest

import paramcount as pc
from paramcount.explore.models import export_models
from paramcount.loading import load
from tests.comparison import load_configs, load_reference
from tests.running import Runner

ENTRY = "t5-v1.1-large"
RELEASED = 783_150_080  # github sdpetrides/t5x-train-and-test, README.md


def test_a_difference_has_the_totals_of_the_reference_and_names_the_tensor_that_only_the_release_has(
    run: Runner,
) -> None:
    reference = load_reference()[ENTRY]["total"]
    found: dict[str, Any] = json.loads(run("diff", "t5-small", ENTRY, "--json").out)
    assert (found["total_b"], found["reference_total_b"]) == (RELEASED, reference)
    assert found["reference_total_a"] == found["total_a"] == load_reference()["t5-small"]["total"]
    line = f"{ENTRY}: the reference implementation ties lm_head and has {reference:,}"
    assert found["release_differences"] == [line]
    assert line in " ".join(run("diff", "t5-small", ENTRY).out.split())


def test_a_sweep_counts_what_the_reference_builds_of_every_row() -> None:
    config = load_configs()[ENTRY]
    (frame,) = pc.sweep(ENTRY, {"n_layers": [12, 24], "d_ff": [1024, 2816]}, columns=["total", "reference_total"])
    for _, row in frame.iterrows():
        document = config | {"num_layers": int(row["n_layers"]), "d_ff": int(row["d_ff"])}
        with pytest.warns(pc.ConfigWarning):
            assert pc.count(document).total == row["reference_total"]
    assert set(frame["total"] - frame["reference_total"]) == {32128 * 1024}  # vocab_size × d_model


def test_a_frame_has_the_total_of_the_reference() -> None:
    config = load_configs()[ENTRY]
    keys = ("d_model", "d_ff", "d_kv", "num_heads", "num_layers", "vocab_size", "feed_forward_proj")
    frame = pandas.DataFrame([{key: config[key] for key in keys}] * 5)
    result = pc.count_frame(frame, architecture="t5", columns=["reference_total"])
    assert result["reference_total"].tolist() == [load_reference()[ENTRY]["total"]] * 5


def test_the_page_has_the_total_of_the_reference_and_the_tensor_that_only_the_release_has() -> None:
    (model,) = export_models([load(ENTRY)])["models"]
    reference = load_reference()[ENTRY]["total"]
    assert (model["total"], model["reference_total"]) == (RELEASED, reference)
    assert model["release_difference"] == f"the reference implementation ties lm_head and has {reference:,}"
