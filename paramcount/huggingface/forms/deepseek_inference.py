"""The configs of DeepSeek's inference code, inference/configs/*.json.

Source: github deepseek-ai/DeepSeek-V3, inference/model.py (ModelArgs, MLA, Gate, MoE, Transformer).
"""

from __future__ import annotations

from paramcount.errors import make_choice_error
from paramcount.huggingface.forms.form import ConfigForm, Document, Translation, rename_keys

KEYS = {
    "dim": "hidden_size", "inter_dim": "intermediate_size", "moe_inter_dim": "moe_intermediate_size",
    "n_layers": "num_hidden_layers", "n_dense_layers": "first_k_dense_replace", "n_heads": "num_attention_heads",
    "n_activated_experts": "num_experts_per_tok", "n_expert_groups": "n_group", "n_limited_groups": "topk_group",
    "route_scale": "routed_scaling_factor",
}  # fmt: skip
# Runtime options, and YaRN's parameters, which set no size.
UNUSED = (
    "dtype", "scale_fmt", "max_batch_size", "max_seq_len", "score_func", "q_lora_rank", "original_seq_len",
    "rope_factor", "beta_fast", "beta_slow", "mscale",
)  # fmt: skip
# ModelArgs has a default for every size: those of the 16B model.
DEFAULTS = {
    "vocab_size": 102400, "dim": 2048, "inter_dim": 10944, "moe_inter_dim": 1408, "n_layers": 27, "n_dense_layers": 1,
    "n_heads": 16, "n_routed_experts": 64, "n_shared_experts": 2, "n_activated_experts": 6, "n_expert_groups": 1,
    "n_limited_groups": 1, "route_scale": 1.0, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "rope_theta": 10000.0,
}  # fmt: skip
SPARSE = ("index_n_heads", "index_head_dim", "index_topk")  # of DeepSeek-V3.2


def matches(document: Document) -> bool:
    return "model_type" not in document and {"dim", "n_layers", "inter_dim", "kv_lora_rank"} <= set(document)


def translate(document: Document) -> Translation:
    """Sigmoid scores mean DeepSeek-V3, whose router has a bias for each expert; softmax means V2."""
    scores = document.get("score_func", "softmax")
    if scores not in ("softmax", "sigmoid"):
        raise make_choice_error(scores, ("softmax", "sigmoid"), where="score_func")
    found = rename_keys({**DEFAULTS, **document}, KEYS, UNUSED)
    found["q_lora_rank"] = document.get("q_lora_rank") or None
    found["num_key_value_heads"] = found["num_attention_heads"]
    found["tie_word_embeddings"] = False
    version = "V3" if scores == "sigmoid" else "V2"
    if version == "V2":
        found["topk_method"] = "greedy" if found["n_group"] == 1 else "group_limited_greedy"
    elif any(key in document for key in SPARSE):
        version = "V32"
    names = {"model_type": f"deepseek_{version.lower()}", "architectures": [f"Deepseek{version}ForCausalLM"]}
    return Translation({**names, **found})


FORM = ConfigForm("a config of DeepSeek's inference code", matches, translate, KEYS)
