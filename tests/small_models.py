"""Small models with random weights, as mappings of arrays and as checkpoints on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import paramcount as pc
from paramcount.checkpoints.matching import expand_names
from paramcount.flow.operation import Array
from tests.gpt2_files import write_weights

LLAMA: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 23, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 20, "max_position_embeddings": 64, "rope_theta": 10000.0,
}  # fmt: skip
MIXTRAL: dict[str, Any] = LLAMA | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
GPT2: dict[str, Any] = {
    "model_type": "gpt2", "vocab_size": 23, "n_positions": 11, "n_embd": 8, "n_layer": 2, "n_head": 2
}  # fmt: skip
TOKENS = [3, 1, 4, 1, 5, 9]


def make_arrays(config: Mapping[str, Any], seed: int = 0) -> dict[str, Array]:
    """Random weights under the names of the checkpoint, tied copies left out."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(0, 0.3, tensor.shape).astype(np.float32)
        for name, tensor in expand_names(pc.count(config).tensors).items()
        if tensor.tied_to is None and tensor.role != "legacy_buffer"
    }


def write_model(folder: Path, config: Mapping[str, Any], dtype: str = "F32", shards: int = 1) -> Path:
    """A directory with a config.json and random weights in one or more files."""
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    arrays = list(make_arrays(config).items())
    if shards == 1:
        write_weights(folder / "model.safetensors", dict(arrays), dtype)
        return folder
    weight_map: dict[str, str] = {}
    for i in range(shards):
        name = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        write_weights(folder / name, dict(arrays[i::shards]), dtype)
        weight_map |= dict.fromkeys((tensor for tensor, _ in arrays[i::shards]), name)
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder
