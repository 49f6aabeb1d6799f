"""The guides that `explain` refers to."""

from __future__ import annotations

import re

import pytest

from paramcount.cli.docs import list_topics
from tests.running import Runner


@pytest.mark.parametrize(
    ("model", "guides"),
    [
        ("gpt2-small", {"attention": "multi-head attention", "kv-cache": "memory per token"}),
        ("falcon-7b", {"attention": "multi-query attention", "kv-cache": "memory per token"}),
        ("bert-base-uncased", {"attention": "multi-head attention"}),
        ("mamba-130m", {}),
        (
            "deepseek-v3",
            {
                "attention": "multi-head latent attention",
                "kv-cache": "memory per token",
                "moe": "mixture of experts",
                "rope": "rotary positions",
                "precision": "quantised weights",
            },
        ),
    ],
)
def test_an_explanation_names_the_guides_to_what_the_model_has(model: str, guides: dict[str, str], run: Runner) -> None:
    found = dict(re.findall(r"`paramcount docs ([a-z-]+)` \(([^)]+)\)", run("explain", model).err))
    assert found == guides
    assert set(found) <= set(list_topics())


def test_other_formats_and_parts_of_a_model_have_no_such_note(run: Runner) -> None:
    for options in (["--csv"], ["--json"], ["--latex"], ["--layer", "0"], ["--head"], ["--tensors"]):
        assert run("explain", "gpt2-small", *options).err == ""
