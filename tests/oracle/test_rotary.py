"""Rotary positions of every way to state them, against those that the reference builds."""

from __future__ import annotations

import pytest

from tests.oracle import rotary
from tests.oracle.differential import silence

# One type for each way in which the reference reads them.
TYPES = (
    "apertus", "cwm", "beam", "olmo3", "ultrabert", "gpt_neox", "minimax_m2", "nemotron", "llama", "modernbert",
    "ministral3", "mimo_v2_flash", "laguna", "mellum", "glm", "qwen3_next", "persimmon", "gpt_neox_japanese",
)  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_rotary_positions_are_those_of_the_reference_or_refused_by_both(name: str) -> None:
    silence()
    document, cls_name = rotary.list_small_documents()[name]
    variants = dict(rotary.list_variants(document, cls_name))
    assert len(variants) > 40
    differences = {variant: rotary.find_difference(changed, cls_name) for variant, changed in variants.items()}
    assert {variant: text for variant, text in differences.items() if text} == {}
