"""Models without layers, MLPs or active experts: the reference builds and runs most of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from tests.running import Runner

# (config.json, parameters of the reference's class that the model type stands for)
SMALL = {"vocab_size": 96, "hidden_size": 32, "num_attention_heads": 4}
T5 = {"model_type": "t5", "vocab_size": 96, "d_model": 32, "d_kv": 8, "num_heads": 4, "d_ff": 64}
BUILT: list[tuple[dict[str, Any], int]] = [
    ({"model_type": "llama", **SMALL, "num_hidden_layers": 0}, 6176),
    ({"model_type": "llama", **SMALL, "num_hidden_layers": 1, "intermediate_size": 0}, 10336),
    ({"model_type": "bert", **SMALL, "num_hidden_layers": 0}, 20800),
    ({**T5, "num_layers": 0, "num_decoder_layers": 0}, 3136),
    ({**T5, "num_layers": 1, "num_decoder_layers": 0}, 11520),  # the bias of relative positions is the first layer's
    ({"model_type": "gpt_neox_japanese", **SMALL, "num_hidden_layers": 0}, 3136),
    ({"model_type": "rwkv", "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 0}, 6208),
    ({"model_type": "inkling2_text", "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 0}, 6240),
    ({"model_type": "glm4_moe_lite", "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 0}, 6176),
    ({"model_type": "gemma4_text", **SMALL, "num_hidden_layers": 0, "vocab_size_per_layer_input": 96}, 3360),
    ({"model_type": "mixtral", **SMALL, "num_key_value_heads": 2, "num_hidden_layers": 0}, 6176),
    (
        {
            "model_type": "qwen2_moe", **SMALL, "num_key_value_heads": 2, "num_hidden_layers": 1, "num_experts": 4,
            "num_experts_per_tok": 0, "moe_intermediate_size": 0, "shared_expert_intermediate_size": 0,
        },
        9536,
    ),
]  # fmt: skip
COMMANDS = (
    "show", "explain", "trace", "memory", "flops", "training", "compare", "verify", "draw -o OUT.svg", "map -o OUT.svg",
    "report -o OUT.html", "explore -o OUT.html", "lora --targets embed_tokens,shared", "plan",
)  # fmt: skip


@pytest.mark.parametrize(("document", "total"), BUILT)
def test_a_model_without_layers_or_mlps_is_counted_as_the_reference_builds_it(
    document: dict[str, Any], total: int
) -> None:
    assert pc.count(document).total == total


def test_a_model_without_layers_still_warns_of_the_sizes_that_it_does_not_state() -> None:
    with pytest.warns(pc.ConfigWarning, match="intermediate_size"):
        pc.count({"model_type": "llama", **SMALL, "num_hidden_layers": 0})


def test_a_sweep_begins_without_layers() -> None:
    totals = [total for part in pc.sweep(T5, {"n_layers": [0, 1], "n_decoder_layers": [0]}) for total in part["total"]]
    assert totals == [3136, 11520]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("document", [BUILT[0][0], BUILT[1][0], BUILT[3][0], BUILT[10][0]])
def test_every_command_describes_a_model_without_layers(
    document: dict[str, Any], command: str, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.json").write_text(json.dumps(document), encoding="utf-8")
    name, *options = command.split()
    assert run(name, "empty.json", *options).code == 0
