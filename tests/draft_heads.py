"""Configs of draft heads for speculative decoding: published ones, and small ones that differ in what they have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# {name: source, config, and what its code has, as tests/oracle/drafts.py builds it: total, embedding, lm_head, buffers}
DATA = Path(__file__).parent / "data"
CONFIGS: dict[str, dict[str, Any]] = json.loads((DATA / "draft_heads.json").read_text(encoding="utf-8"))
# {name: source, config, and the parameters that EAGLE's authors publish}: they name LlamaForCausalLM as their class.
EAGLE_HEADS: dict[str, dict[str, Any]] = json.loads((DATA / "eagle_heads.json").read_text(encoding="utf-8"))

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
EAGLE = {key: value for key, value in SIZES.items() if key != "head_dim"} | {
    "model_type": "llama", "architectures": ["LlamaForCausalLMEagle"],
}  # fmt: skip
SPECULATOR = {
    "architectures": ["Eagle3DraftModel"], "speculators_model_type": "eagle3", "draft_vocab_size": 50,
    "norm_before_residual": False, "norm_before_fc": False, "fc_norm": True,
    "eagle_aux_hidden_state_layer_ids": [2, 5, 7, 9], "speculators_config": {"algorithm": "eagle3"},
    "transformer_layer_config": {**SIZES, "model_type": "llama"},
}  # fmt: skip
MEDUSA = {
    "model_type": "medusa", "architectures": ["MedusaModel"], "vocab_size": 96, "hidden_size": 32, "num_heads": 3,
    "num_hidden_layers": 2,
}  # fmt: skip
MLP = {
    "model_type": "mlp_speculator", "architectures": ["MLPSpeculatorPreTrainedModel"], "vocab_size": 96, "emb_dim": 32,
    "inner_dim": 20, "n_predict": 3, "tie_weights": False, "scale_input": False,
}  # fmt: skip
SMALL: dict[str, dict[str, Any]] = {
    "eagle3": EAGLE3,
    "eagle3, norms of the states": {**EAGLE3, "fc_norm": True, "target_hidden_size": 18},
    "eagle3, more layers": {
        **EAGLE3, "architectures": ["Eagle3LlamaForCausalLM"], "num_hidden_layers": 3, "attention_bias": True,
    },
    "eagle": EAGLE,
    "eagle, more layers": {**EAGLE, "num_hidden_layers": 3, "qkv_bias": True, "bias": False},
    "eagle, of vLLM": {**EAGLE, "architectures": ["EagleLlamaForCausalLM"]},
    "eagle3, of speculators": SPECULATOR,
    "eagle3, of speculators, Qwen 3": {
        **SPECULATOR, "fc_norm": False, "norm_before_fc": True, "draft_vocab_size": 96, "norm_before_residual": True,
        "transformer_layer_config": {**SIZES, "model_type": "qwen3", "num_hidden_layers": 2, "attention_bias": True},
    },
    "medusa": MEDUSA,
    "medusa, one LM head": {**MEDUSA, "original_lm_head": True, "medusa_fc_bias": True, "truncated_vocab_size": 50},
    "mlp_speculator": MLP,
    "mlp_speculator, tied": {**MLP, "tie_weights": True, "scale_input": True, "inner_dim": 0},
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
