"""VideoChat-Flash: Qwen2 of the reference, put together with an encoder and a projector as vision_tower_builder.py and
mm_projector_builder.py of OpenGVLab/VideoChat-Flash-Qwen2-7B_res448 build them. Their code is not run.
"""

# mypy: disable-error-code="misc"

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn

from paramcount.api import load
from paramcount.execution import run_model
from tests.oracle import logits, passes
from tests.oracle.differential import count_document, silence

PATH = Path(__file__).parents[1] / "data" / "remote_models.json"
NAME = "VideoChat-Flash-Qwen2-7B_res448"
SMALL = {
    "vocab_size": 96, "hidden_size": 32, "intermediate_size": 44, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-3, "rope_theta": 500.0,
    "tie_word_embeddings": False, "hidden_act": "silu", "sliding_window": None,
}  # fmt: skip
D, PATCH, DEPTH = 1024, 16, 24


class Attention(nn.Module):
    """Keys have no bias."""

    def __init__(self) -> None:
        super().__init__()
        self.q_bias, self.v_bias = (nn.Parameter(torch.zeros(D)) for _ in range(2))
        self.qkv, self.proj = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attn, self.norm2, self.mlp = nn.LayerNorm(D), Attention(), nn.LayerNorm(D), nn.Module()
        self.mlp.fc1, self.mlp.fc2 = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)


def build(document: dict[str, Any], device: str) -> Any:
    """On the device meta, a model of any size."""
    keys = {key: value for key, value in document.items() if key[:3] != "mm_" and key not in ("model_type", "auto_map")}
    with torch.device(device):
        config = transformers.AutoConfig.for_model("qwen2", **keys)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        encoder, outer, projector = nn.Module(), nn.Module(), nn.Module()
        encoder.patch_embed = nn.Module()
        encoder.patch_embed.proj = nn.Conv3d(3, D, (1, PATCH, PATCH))
        encoder.blocks = nn.ModuleList(Block() for _ in range(DEPTH + document["mm_vision_select_layer"] + 1))
        encoder.vision_layernorm = nn.LayerNorm(D)
        outer.vision_tower = nn.Module()
        outer.vision_tower.encoder = encoder
        width = config.hidden_size
        projector.mlp = nn.Sequential(nn.Linear(D, width), nn.GELU(), nn.Linear(width, width))
        model.model.vision_tower, model.model.mm_projector = outer, projector
    return model


def load_released() -> dict[str, Any]:
    released: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))[NAME]
    return released


def make_small() -> dict[str, Any]:
    kept = {key: value for key, value in load_released()["config"].items() if key not in SMALL}
    return {**kept, **SMALL}


def test_every_tensor_has_the_name_and_the_shape_of_the_models_put_together() -> None:
    silence()
    released = load_released()
    for document in (released["config"], make_small()):
        found = count_document(document)[1]
        assert found == {key: tuple(w.shape) for key, w in build(document, "meta").named_parameters()}
    weights = [w.shape for w in build(released["config"], "meta").parameters()]
    assert Counter("×".join(map(str, shape)) for shape in weights) == released["shapes"]
    assert sum(shape.numel() for shape in weights) == released["total"]


def test_a_text_has_the_logits_of_the_language_model() -> None:
    silence()
    model, sizes = build(make_small(), "cpu"), load(make_small()).sizes
    logits.fill_weights(model)
    ids = passes.make_token_ids(23, 1)
    weights = {name: weight.detach().numpy() for name, weight in model.named_parameters()}
    with torch.no_grad():
        expected = model(input_ids=ids).logits[0].numpy()
    found = run_model(sizes, weights, ids[0].tolist()).logits
    assert np.abs(found - expected).max() < logits.TOLERANCE * np.abs(expected).max()
