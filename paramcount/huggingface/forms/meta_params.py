"""The params.json of Meta's Llama releases: Llama 1 to 4.

Source: github meta-llama/llama-models, models/llama3/args.py and model.py (FeedForward), models/llama4/args.py,
model.py (TransformerBlock), moe.py (MoE) and vision/embedding.py.
"""

from __future__ import annotations

from typing import Any

from paramcount.errors import ParamcountError, describe_value
from paramcount.huggingface.forms.form import (
    ConfigForm,
    Document,
    Translation,
    get_block,
    get_number,
    get_positive,
    rename_keys,
    require,
)

KEYS = {
    "dim": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads", "norm_eps": "rms_norm_eps",
}  # fmt: skip
UNUSED = (
    "multiple_of", "ffn_dim_multiplier", "ffn_exp", "use_scaled_rope", "rope_scaling_factor", "rope_high_freq_factor",
    "max_batch_size", "max_seq_len", "vision_args", "moe_args", "nope_layer_interval", "quantization_args", "lora_args",
    "dropout",
)  # fmt: skip
MOST_LAYERS = 10_000  # of a Llama 4, whose layers are listed
MULTIPLE = 256  # multiple_of of ModelArgs
LLAMA3_SCALING = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
# (dim, n_layers) of Llama 3.2 1B and 3B: their config.json ties the LM head, which Meta's code does not.
TIED = {(2048, 16), (3072, 28)}


def matches(document: Document) -> bool:
    """Whether a file has the sizes of ModelArgs. `multiple_of` and `ffn_dim_multiplier` are Meta's alone."""
    if "model_type" in document or not {"dim", "n_layers", "n_heads"} <= set(document):
        return False
    return not {"multiple_of", "ffn_dim_multiplier", "moe_args"}.isdisjoint(document)


def translate(document: Document) -> Translation:
    if any(key.startswith("vision_num") or key == "vision_model" for key in document):
        problem = "is params.json of a Llama 3.2 vision model, which does not state the sizes of its image encoder"
        raise ParamcountError(problem, expected="the config.json of the Hugging Face version")
    require(document, "dim", "n_layers", "n_heads")
    check_vocabulary(document)
    found = {"rms_norm_eps": 1e-5, **rename_keys(document, KEYS, UNUSED), "tie_word_embeddings": False}
    if not document.get("moe_args"):
        if document.get("use_scaled_rope"):
            found["rope_scaling"] = LLAMA3_SCALING
        found["intermediate_size"] = compute_hidden_size(document, 4 * get_positive(document, "dim"))
        return Translation(
            {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **found}, tuple(warn_untied(document))
        )
    text = {**found, **translate_experts(document)}
    if not document.get("vision_args"):
        return Translation({"model_type": "llama4_text", "architectures": ["Llama4ForCausalLM"], **text})
    sections = {"text_config": {"model_type": "llama4_text", **text}, "vision_config": translate_vision(document)}
    names = {"model_type": "llama4", "architectures": ["Llama4ForConditionalGeneration"]}
    return Translation({**names, **sections, "tie_word_embeddings": False})


def check_vocabulary(document: Document) -> None:
    """Raises: ParamcountError for -1, which means that the code asks the tokenizer."""
    if document.get("vocab_size", -1) == -1:
        problem = "is missing" if "vocab_size" not in document else "= -1 leaves it to the tokenizer"
        expected = "the number of tokens in tokenizer.model of the release (32000 for Llama 1 and 2); write it here"
        raise ParamcountError(problem, where="vocab_size", expected=expected)


def compute_hidden_size(document: Document, size: int) -> int:
    """The MLP hidden size: two thirds, times ffn_dim_multiplier, rounded up to multiple_of, as Meta's code has it."""
    size = int(get_number(document, "ffn_dim_multiplier", 1.0) * int(2 * size / 3))
    multiple = get_positive(document, "multiple_of", MULTIPLE)
    return -(-size // multiple) * multiple


def warn_untied(document: Document) -> list[str]:
    dim, n_layers = get_positive(document, "dim"), get_positive(document, "n_layers")
    if (dim, n_layers) not in TIED:
        return []
    duplicate = dim * get_positive(document, "vocab_size")
    return [
        f"params.json does not say whether the LM head is tied; counted as separate, as Meta's code builds it. The "
        f"config.json of Llama 3.2 with these sizes ties it: {duplicate:,} fewer"
    ]


def translate_experts(document: Document) -> dict[str, Any]:
    """What a Llama 4 has beside the sizes of a Llama: experts, whose hidden size shrinks with what is active."""
    experts = get_block(document, "moe_args")
    dim, n_heads = get_positive(document, "dim"), get_positive(document, "n_heads")
    size = int(2 * int(get_number(document, "ffn_exp", 4.0) * dim) / 3)
    size = int(get_number(document, "ffn_dim_multiplier", 1.0) * size)
    if experts.get("auto_scale_F", True):
        size = int(size / (get_number(experts, "capacity_factor", 1.0) + 1))
    size += -size % get_positive(document, "multiple_of", MULTIPLE)
    unrotated, n_layers = document.get("nope_layer_interval"), get_positive(document, "n_layers")
    if n_layers > MOST_LAYERS:
        raise ParamcountError(f"= {describe_value(n_layers)}", where="n_layers", expected=f"at most {MOST_LAYERS:,}")
    if unrotated is not None:
        unrotated = get_positive(document, "nope_layer_interval")
    return {
        "intermediate_size": size,
        "intermediate_size_mlp": compute_hidden_size(document, 4 * dim),
        "num_local_experts": get_positive(experts, "num_experts"),
        "num_experts_per_tok": get_positive(experts, "top_k", 1),
        "interleave_moe_layer_step": get_positive(experts, "interleave_moe_layer_step", 1),
        "head_dim": document.get("head_dim") or dim // n_heads,
        "use_qk_norm": document.get("use_qk_norm", False),
        "no_rope_layers": [0 if unrotated and (i + 1) % unrotated == 0 else 1 for i in range(n_layers)],
    }


def translate_vision(document: Document) -> dict[str, Any]:
    """Llama 4's image encoder; the projector is as wide as its output."""
    vision = get_block(document, "vision_args")
    dim, out = get_positive(vision, "dim"), get_positive(vision, "output_dim")
    ratio = get_number(vision, "pixel_shuffle_ratio", 0.5)
    size = int(get_number(vision, "mlp_ratio", 4.0) * dim)
    if size != int(dim / ratio**2):
        problem = f"makes MLPs of {size}, but the adapter reads {int(dim / ratio**2)}"
        raise ParamcountError(problem, where="vision_args.mlp_ratio", expected="1 / pixel_shuffle_ratio²")
    return {
        "model_type": "llama4_vision_model",
        "hidden_size": dim,
        "num_hidden_layers": get_positive(vision, "n_layers"),
        "num_attention_heads": get_positive(vision, "n_heads"),
        "intermediate_size": size,
        "image_size": get_positive(get_block(vision, "image_size"), "height"),
        "patch_size": get_positive(get_block(vision, "patch_size"), "height"),
        "pixel_shuffle_ratio": ratio,
        "projector_input_dim": out,
        "projector_output_dim": out,
        "vision_output_dim": out,
    }


FORM = ConfigForm("Meta's params.json", matches, translate, KEYS)
