"""Ranks and targets that explain a number of trainable parameters."""

from __future__ import annotations

import json

import pytest

import paramcount as pc
from tests.running import Runner


@pytest.mark.parametrize(
    ("model", "trainable", "first"),
    [
        # peft's README and docs: r=16 with its default targets; flan-t5-large, opt-6.7b and whisper-large-v2
        ("qwen2.5-3b", 3_686_400, ("lora", 16, "q_proj, v_proj")),
        ("opt-6.7b", 8_388_608, ("lora", 16, "q_proj, v_proj")),
        ("whisper-large-v2", 15_728_640, ("lora", 32, "q_proj, v_proj")),
        # peft's notebook QDoRA_finetuning.ipynb, and unsloth's notebooks of Llama 3.3 and Gemma 3
        ("llama-3-8b", 22_347_776, ("dora", 8, "all linear layers")),
        ("llama-3.3-70b", 207_093_760, ("lora", 16, "all linear layers")),
        ("gemma-3-27b", 56_758_272, ("lora", 8, "all linear layers without encoders and projector")),
    ],
)
def test_the_simplest_explanation_of_a_logged_number_comes_first(
    model: str, trainable: int, first: tuple[str, int, str]
) -> None:
    explanation = pc.find_adapters(model, trainable).explanations[0]
    assert (explanation.method, explanation.r, explanation.targets) == first


def test_every_explanation_is_an_adapter_with_that_number() -> None:
    found = pc.find_adapters("llama-3.1-8b", "3,407,872")
    assert len(found.explanations) == 12
    for explanation in found.explanations:
        adapter = pc.lora("llama-3.1-8b", **explanation.arguments)
        assert (
            (adapter.trainable, adapter.total)
            == (3_407_872, explanation.total)
            == (explanation.trainable, 8_030_261_248 + 3_407_872)
        )


def test_a_module_that_is_trained_as_a_whole_is_found() -> None:
    n = 32 * 8 * (2 * 4096 + 2 * 4096) + 32_000 * 4096  # q and v of 32 layers, and the LM head
    explanations = pc.find_adapters("llama-2-7b", n).explanations
    usual = [e for e in explanations if (e.r, e.targets) == (8, "q_proj, v_proj")]
    assert [e.modules_to_save for e in usual] == [("lm_head",), ("embed_tokens",)]


def test_a_number_that_no_adapter_has_is_not_explained(run: Runner) -> None:
    found = run("why", "llama-2-7b", "--trainable", "39976961")
    assert (found.code, found.out) == (1, "Llama 2 7B   no adapter has 39,976,961 trainable parameters\n")


def test_a_rounded_number_has_the_adapters_that_round_to_it(run: Runner) -> None:
    data = json.loads(run("why", "llama-2-7b", "--trainable", "40M", "--json").out)
    assert data["adapters"][0]["explanations"][0]["arguments"] == {"targets": "all-linear", "r": 16}  # 39,976,960
