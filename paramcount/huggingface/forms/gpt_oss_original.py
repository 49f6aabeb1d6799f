"""The config of gpt-oss's original files, original/config.json.

Source: github openai/gpt-oss, gpt_oss/torch/model.py (ModelConfig).
"""

from __future__ import annotations

from paramcount.huggingface.forms.form import ConfigForm, Document, Translation, rename_keys, require

KEYS = {"num_experts": "num_local_experts", "experts_per_token": "num_experts_per_tok"}
ROPE = ("rope_scaling_factor", "rope_ntk_alpha", "rope_ntk_beta", "initial_context_length")


def matches(document: Document) -> bool:
    return "model_type" not in document and {"num_experts", "experts_per_token", "swiglu_limit"} <= set(document)


def translate(document: Document) -> Translation:
    """The model has window and full attention by turns, and biases everywhere, as the class of transformers."""
    require(
        document,
        "num_hidden_layers", "num_experts", "experts_per_token", "vocab_size", "hidden_size", "intermediate_size",
        "head_dim", "num_attention_heads", "num_key_value_heads",
    )  # fmt: skip
    found = rename_keys(document, KEYS, ROPE)
    if document.get("rope_scaling_factor"):
        found["rope_scaling"] = {
            "rope_type": "yarn",
            "factor": document["rope_scaling_factor"],
            "beta_fast": document.get("rope_ntk_beta", 32.0),
            "beta_slow": document.get("rope_ntk_alpha", 1.0),
            "original_max_position_embeddings": document.get("initial_context_length", 4096),
            "truncate": False,
        }
    return Translation({"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], **found})


FORM = ConfigForm("the config of gpt-oss's original files", matches, translate, KEYS)
