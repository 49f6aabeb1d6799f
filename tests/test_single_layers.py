"""per_layer_config: what single layers have of their own, in the form in which the reference saves every Gemma 4."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.sizes.single_layers import PER_LAYER
from tests.running import Runner
from tests.test_config_files import QWEN, TOTAL

GEMMA: dict[str, Any] = {"model_type": "gemma4_text"}  # 30 layers of d_head 256, every sixth of them full
FULL = (5, 11, 17, 23, 29)
DOTS: dict[str, Any] = {"model_type": "dots3_note_text", "num_hidden_layers": 3}  # the third over a window
WINDOW = {
    "num_attention_heads": 64, "num_key_value_heads": 64, "head_dim": 256, "q_lora_rank": 1024, "kv_lora_rank": 1024,
        "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64, "v_head_dim": 128,
}  # fmt: skip


def gemma_config(**sizes: int) -> dict[str, Any]:
    return GEMMA | {PER_LAYER: {f"{i:02}": sizes for i in FULL}}


@pytest.mark.parametrize(
    ("document", "total"),
    [  # Gemma4ForCausalLM of transformers 5.23.0
        (GEMMA, 5_077_177_856),
        (GEMMA | {PER_LAYER: {}}, 5_006_396_416),
        (GEMMA | {PER_LAYER: None, "global_head_dim": 64}, 5_006_396_416),
        (GEMMA | {PER_LAYER: {}, "global_head_dim": None, "num_global_key_value_heads": "no"}, 5_006_396_416),
        (gemma_config(head_dim=512), 5_077_177_856),
        (gemma_config(head_dim=512, num_key_value_heads=1), 5_041_788_416),
        (GEMMA | {PER_LAYER: {i: {"head_dim": 512 if i in FULL else 256, "num_key_value_heads": 4} for i in range(30)}},
         5_077_177_856),
    ],
)  # fmt: skip
def test_full_attention_layers_of_gemma_4_use_per_layer_config_and_otherwise_the_shared_sizes(
    document: dict[str, Any], total: int
) -> None:
    assert pc.count(document).total == total
    assert (
        pc.count({"model_type": "gemma4", "architectures": ["Gemma4ForCausalLM"], "text_config": document}).total
        == total
    )
    assert (
        pc.count({"model_type": "llava", "tie_word_embeddings": True, "text_config": document}).language_model == total
    )


def test_sliding_window_layers_use_per_layer_config() -> None:
    as_saved = DOTS | {
        "layer_types": ["indexed_attention", "indexed_attention", "sliding_attention"],
        PER_LAYER: {"2": WINDOW},
    }
    assert pc.count(as_saved).total == pc.count(DOTS).total
    wider = (
        pc.count(as_saved | {PER_LAYER: {"2": WINDOW | {"v_head_dim": 129}}, "swa_v_head_dim": 7}).total
        - pc.count(DOTS).total
    )
    assert wider == 64 * (1024 + 5120)  # a row for each head out of the latent, a column into d_model
    assert (
        pc.count(DOTS | {"num_hidden_layers": 2, PER_LAYER: {}}).total == 8_122_299_008
    )  # Dots3NoteForCausalLM of transformers 5.23.0


def test_keys_shows_where_the_size_of_a_single_layer_comes_from(tmp_path: Path, run: Runner) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(gemma_config(head_dim=512) | {"global_head_dim": 64}), encoding="utf-8")
    rows = {row["size"] or row["key"]: row for row in json.loads(run(str(path), "--keys", "--json").out)["keys"]}
    assert rows["d_global_head"] == {
        "key": f"{PER_LAYER}.05.head_dim",
        "origin": "read",
        "size": "d_global_head",
        "setting": "",
        "value": 512,
        "derived_from": [],
    }
    assert rows["n_global_kv_heads"]["origin"] == "derived"
    assert rows["global_head_dim"]["origin"] == "ignored"


@pytest.mark.parametrize("nothing", [{}, None])
def test_a_per_layer_config_without_overrides_changes_no_architecture(nothing: dict[str, Any] | None) -> None:
    assert pc.count(QWEN | {PER_LAYER: nothing}).total == TOTAL
