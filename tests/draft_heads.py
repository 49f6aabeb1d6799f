"""Configs of draft heads for speculative decoding: published ones, and small ones that differ in what they have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# {name: source, config, and what its code has, as tests/oracle/drafts.py builds it: total, embedding, lm_head, buffers}
CONFIGS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "draft_heads.json").read_text(encoding="utf-8")
)

SIZES = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 10, "intermediate_size": 44, "rms_norm_eps": 0.01, "max_position_embeddings": 64, "rope_theta": 300.0,
    "hidden_act": "silu",
}  # fmt: skip
EAGLE3 = {**SIZES, "model_type": "llama", "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 50}
BLOCK = {"target_layer_ids": [1, 2, 5], "mask_token_id": 3}
DFLASH = {
    **SIZES, "model_type": "qwen3", "num_hidden_layers": 3, "block_size": 5, "num_target_layers": 8,
    "attention_bias": False, "dflash_config": BLOCK, "architectures": ["DFlashDraftModel"],
}  # fmt: skip
GRU = {**BLOCK, "projector_type": "domino", "emb_dim": 6, "gru_hidden_dim": 14, "shift_label": True}
DOMINO = {**DFLASH, "architectures": ["DominoDraftModel"], "dflash_config": {**GRU, "pure_draft_prefix_len": 1}}
MARKOV = {
    **BLOCK, "projector_type": "dspark", "markov_rank": 6, "enable_confidence_head": True,
    "confidence_head_with_markov": True,
}  # fmt: skip
DSPARK = {**DFLASH, "architectures": ["DSparkDraftModel"], "dflash_config": MARKOV}
SMALL: dict[str, dict[str, Any]] = {
    "eagle3": EAGLE3,
    "eagle3, norms of the states": {**EAGLE3, "fc_norm": True, "target_hidden_size": 18},
    "peagle": {**EAGLE3, "architectures": ["PEagleDraftModel"], "num_hidden_layers": 3},
    "peagle, normed residual": {
        **EAGLE3, "architectures": ["PEagleDraftModel"], "num_hidden_layers": 1, "norm_before_residual": True,
    },
    "dflash": DFLASH,
    "dflash, biases": {**DFLASH, "attention_bias": True},
    "domino": DOMINO,
    "domino, not shifted": {**DOMINO, "dflash_config": {**GRU, "shift_label": False}},
    "dspark": DSPARK,
    "dspark, gated": {**DSPARK, "dflash_config": {**MARKOV, "markov_head_type": "gated"}},
    "dspark, recurrent": {**DSPARK, "dflash_config": {**MARKOV, "markov_head_type": "rnn"}},
    "dspark, no heads": {**DSPARK, "dflash_config": {**BLOCK, "markov_rank": 0}},
}  # fmt: skip
