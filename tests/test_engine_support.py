"""Which models engines run: by the classes of their registries, and those of transformers that they can wrap."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from paramcount.costs.engines import ENGINES

LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128, "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
}  # fmt: skip


def is_supported(engine: str, model: Any, **options: object) -> bool:
    return ENGINES[engine].find_support(pc.load(model), pc.memory(model).caches, options).is_supported


# From the supported models of vLLM's and SGLang's documentation, and from the list of models that vLLM has dropped
@pytest.mark.parametrize(
    ("model", "vllm", "sglang"),
    [
        ("llama-3.1-8b", True, True),
        ("kimi-k2.5", True, True),  # KimiK25ForConditionalGeneration, which the reference calls Kimi_K25…
        ("phi-3.5-moe", True, True),  # PhiMoEForCausalLM, which the reference calls PhimoeForCausalLM
        ("falcon-7b", True, False),
        ("grok-1", False, True),
        ("t5-base", False, False),  # an encoder–decoder model
        ("whisper-large-v3", True, True),
        ("recurrentgemma-2b", False, False),
        ("snowflake-arctic", False, False),  # the code of its authors alone
    ],
)
def test_engines_run_the_classes_of_their_registries(model: str, vllm: bool, sglang: bool) -> None:
    assert (is_supported("vllm", model), is_supported("sglang", model)) == (vllm, sglang)


def test_an_older_version_has_classes_that_a_later_one_dropped() -> None:
    assert not is_supported("vllm", "bamba-9b")
    assert is_supported("vllm", "bamba-9b", version="v0.22")
    bamba = pc.load("bamba-9b")
    note = ENGINES["vllm"].find_support(bamba, pc.memory(bamba).caches, {}).note
    assert note.endswith("vLLM 0.23.0 was the last with it")


def test_the_class_that_a_config_names_decides() -> None:
    assert is_supported("sglang", LLAMA)
    other = {**LLAMA, "architectures": ["MyOwnForCausalLM"]}
    assert ENGINES["sglang"].find_support(pc.load(other), (), {}).note == (
        "SGLang 0.5.23 has no implementation of MyOwnForCausalLM, and its Transformers backend does not take it"
    )


def test_memory_says_whose_implementation_an_engine_runs() -> None:
    assert [it for it in pc.memory("t5-base", engine="vllm").warnings if "no implementation" in it]
    wrapped = (
        "vLLM 0.33.0 has no implementation of HeliumForCausalLM and runs that of transformers (Transformers backend)"
    )
    assert wrapped in pc.memory("helium-1-preview", engine="vllm").notes
    assert wrapped in pc.plan("helium-1-preview", gpu="h100").notes


def test_a_plan_leaves_out_engines_that_do_not_run_the_model() -> None:
    plan = pc.plan("t5-base", gpu="h100")
    assert plan.deployments[0].engine == "transformers"
    assert plan.deployments[0].engine_reason == "default without vllm and sglang"
    assert [note.partition(":")[0] for note in plan.notes] == ["vllm was left out", "sglang was left out"]


@pytest.mark.parametrize(
    ("engine", "dtypes"), [("transformers", ["int4"]), ("minimal", ["int4"]), ("ollama", ["q6_k", "q4_k_m"])]
)
def test_what_helps_is_what_the_engine_reads(engine: str, dtypes: list[str]) -> None:
    fit = pc.memory("llama-3.1-8b", engine=engine, gpu="rtx4060", context=4096).fit
    assert fit is not None
    assert [suggestion.options["dtype"] for suggestion in fit.suggestions if "dtype" in suggestion.options] == dtypes


@pytest.mark.parametrize(("engine", "is_offered"), [("minimal", True), ("transformers", False)])
def test_transformers_is_not_offered_a_smaller_cache(engine: str, is_offered: bool) -> None:
    fit = pc.memory("llama-3.1-8b", engine=engine, gpu="rtx4090", context=60_000).fit
    assert fit is not None
    assert any("kv_dtype" in suggestion.options for suggestion in fit.suggestions) == is_offered
