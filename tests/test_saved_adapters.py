"""PEFT's adapter_config.json: its base is counted, and what the adapter adds is what PEFT trained.

Each config of tests/data/peft_adapters.json is one of PEFT's own comparison, with the numbers that its run logged.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from tests.refusing import error_of, model_error
from tests.running import Runner
from tests.test_config_files import QWEN, TOTAL, write_cache, write_config

ALL_RUNS = json.loads((Path(__file__).parent / "data" / "peft_adapters.json").read_text(encoding="utf-8"))
RUNS = [run for run in ALL_RUNS if "all-attn" not in run["name"]]
(INPUTS_SCALED,) = [run for run in ALL_RUNS if "all-attn" in run["name"]]
LORA = {"peft_type": "LORA", "base_model_name_or_path": "qwen3-8b", "r": 8, "target_modules": ["q_proj", "v_proj"]}
# 36 layers, rank 8: Qwen3-8B's q_proj is 4,096 × 4,096, its v_proj 1,024 × 4,096
ADDED = 36 * 8 * (2 * 4096 + 4096 + 1024)
HELP = "a model of the zoo, in the local Hugging Face cache or on this disk, or the option base"


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run["name"])
def test_an_adapter_adds_what_peft_trained(run: dict[str, Any]) -> None:
    adapter = pc.lora(run["config"])
    assert (adapter.trainable, adapter.total) == (run["trainable"], run["total"])
    assert pc.count(run["config"]).total == pc.count("llama-3.2-3b").total


def test_show_says_what_the_adapter_adds(run: Runner) -> None:
    write_config("a/adapter_config.json", LORA)
    write_config("a/adapter_model.safetensors", "")
    for word in ("./a", "a/adapter_config.json"):
        done = run(word)
        assert done.err == "note: read as PEFT's adapter_config.json, an adapter of qwen3-8b\n"
        assert f"LoRA of rank 8 on q_proj and v_proj adds {ADDED:,} trainable" in " ".join(done.out.split())
    data = json.loads(run("show", "a/adapter_config.json", "--json").out)
    assert data["adapter"] == {"method": "lora", "r": 8, "trainable": ADDED, "problem": ""}
    assert data["total"] == TOTAL


def test_lora_takes_the_options_of_the_file_and_no_others(run: Runner) -> None:
    write_config("a/adapter_config.json", LORA)
    done = run("lora", "a/adapter_config.json", "--json")
    assert json.loads(done.out)["trainable"] == ADDED
    done = run("lora", "a/adapter_config.json", "--targets", "mlp")
    assert done.err == "error: --targets does not combine with adapter_config.json, which states it\n"
    with pytest.raises(pc.ParamcountError, match=r"r does not combine with adapter_config\.json"):
        pc.lora(LORA, r=4)


@pytest.mark.parametrize("base", ["./base", "someone/model"])
def test_the_base_is_a_directory_or_a_repository_in_the_cache(base: str) -> None:
    write_config("base/config.json", QWEN)
    write_cache("someone/model", "aaa")
    assert pc.count({**LORA, "base_model_name_or_path": base}).total == TOTAL


def test_the_base_can_be_given(run: Runner) -> None:
    document = {**LORA, "base_model_name_or_path": "/root/models/Qwen3-8B"}
    write_config("a/adapter_config.json", document)
    assert pc.count(document, base="qwen3-8b").total == TOTAL
    assert pc.count(document, base=QWEN).total == TOTAL
    assert pc.compare(["a/adapter_config.json"], base="qwen3-8b")["total"].tolist() == [TOTAL]
    for command in (["show"], ["memory"], ["compare"], ["lora"], ["flops"]):
        assert run(*command, "a/adapter_config.json", "--base", "qwen3-8b").code == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_model_name_or_path": None}, f"base_model_name_or_path = null (expected {HELP})"),
        ({"base_model_name_or_path": "/root/models/Qwen3-8B"},
         f"base_model_name_or_path = '/root/models/Qwen3-8B' is not known: cannot be read: No such file or directory "
         f"(expected {HELP}); did you mean qwen3-8b, deepseek-r1-0528-qwen3-8b or qwen3-vl-8b?"),
        ({"base_model_name_or_path": "./a"},
         f"base_model_name_or_path = './a' is not known: is an adapter too (expected {HELP})"),
    ],
)  # fmt: skip
def test_an_unknown_base_is_an_error_that_says_what_would_do(changes: dict[str, Any], message: str) -> None:
    write_config("a/adapter_config.json", {**LORA, "base_model_name_or_path": "./a"})
    assert model_error({**LORA, **changes}) == message


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"peft_type": "LOHA"}, "peft_type = 'LOHA' (expected LORA, IA3 or VERA)"),
        ({"target_modules": None}, "target_modules = null (expected the names of modules, as peft saves them)"),
        ({"lora_bias": True}, "lora_bias = true is not supported (expected null)"),
        ({"bias": "some"}, "bias = 'some' (expected none, all, lora_only or vera_only)"),
    ],
)
def test_an_adapter_of_another_kind_is_named_and_its_base_still_counted(
    changes: dict[str, Any], problem: str, run: Runner
) -> None:
    write_config("a/adapter_config.json", {**LORA, **changes})
    done = run("a/adapter_config.json")
    assert done.code == 0
    assert f"adapter: not counted (adapter_config.json: {problem}" in " ".join(done.out.split())
    assert error_of(pc.lora, "a/adapter_config.json").startswith(f"adapter_config.json: {problem}")


def test_ia3_that_scales_the_inputs_of_other_layers_is_refused() -> None:
    with pytest.raises(pc.ParamcountError, match=r"feedforward_modules = .* is not supported"):
        pc.lora(INPUTS_SCALED["config"])
