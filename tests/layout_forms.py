"""The same small models in the forms in which files hold them: the declaration's tensors under other names, fused,
split or transposed.

Sources: of Meta's names and Mistral's transformers, models/mistral/convert_mistral_weights_to_hf.py and
models/mistral3/convert_mistral3_weights_to_hf.py; of MLX's ml-explore/mlx-lm, mlx_lm/models; of nanoGPT's
karpathy/nanoGPT, model.py; of towers the indices of released models and transformers 5.23, conversion_mapping.py; of
Qwen3-VL-MoE both ways the same file, `check_dims`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from paramcount.api import count
from paramcount.checkpoints.matching import expand_names
from tests.headers import Shape, Shapes, read_shapes

Config: TypeAlias = dict[str, Any]

# Two layers, width 8, 4 heads of 2 over 2 heads of keys and values, MLP 12, 16 tokens.
SIZES: Config = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 16,
}
DENSE: Config = {**SIZES, "intermediate_size": 12}
EXPERTS: Config = {**DENSE, "num_experts_per_tok": 2}
LLAMA: Config = {"model_type": "llama", **DENSE}
PHI3: Config = {"model_type": "phi3", **DENSE, "pad_token_id": 0}
MIXTRAL: Config = {"model_type": "mixtral", **EXPERTS, "num_local_experts": 3}
QWEN3_MOE: Config = {
    "model_type": "qwen3_moe",
    **EXPERTS,
    "head_dim": 2,
    "moe_intermediate_size": 6,
    "num_experts": 3,
}
GPT2: Config = {"model_type": "gpt2", "n_embd": 8, "n_layer": 2, "n_head": 2, "vocab_size": 16, "n_positions": 10}
BERT: Config = {
    "model_type": "bert",
    "architectures": ["BertForMaskedLM"],
    **{key: size for key, size in DENSE.items() if key != "num_key_value_heads"},
    "max_position_embeddings": 10,
    "type_vocab_size": 2,
}
# Towers of two layers, width 4, MLP 6, four patches of 2 × 2.
EYES: Config = {
    "hidden_size": 4,
    "intermediate_size": 6,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 4,
    "patch_size": 2,
    "num_channels": 3,
}
HEADLESS: Config = {"model_type": "siglip_vision_model", **EYES, "vision_use_head": False}
GEMMA: Config = {**DENSE, "head_dim": 2}


def see(model_type: str, text: Config, vision: Config, **keys: Any) -> Config:
    """A language model with a vision encoder."""
    return {"model_type": model_type, "text_config": text, "vision_config": vision, **keys}


LLAVA = see("llava", LLAMA, {"model_type": "clip_vision_model", **EYES})
PALIGEMMA = see("paligemma", {"model_type": "gemma", **GEMMA}, HEADLESS, projection_dim=8)
GEMMA3 = see("gemma3", {"model_type": "gemma3_text", **GEMMA}, HEADLESS, mm_tokens_per_image=4)
MISTRAL3 = see(
    "mistral3",
    {"model_type": "mistral", **GEMMA},
    {"model_type": "pixtral", **EYES},
    spatial_merge_size=2,
    tie_word_embeddings=False,
)
QWEN3_VL: Config = {
    "depth": 2,
    "hidden_size": 4,
    "intermediate_size": 6,
    "num_heads": 2,
    "out_hidden_size": 8,
    "patch_size": 2,
    "num_position_embeddings": 9,
    "deepstack_visual_indexes": [0],
}
QWEN3_VL_MOE = see(
    "qwen3_vl_moe",
    {**QWEN3_MOE, "model_type": "qwen3_vl_moe_text", "tie_word_embeddings": False},
    QWEN3_VL,
    tie_word_embeddings=False,
)


def repeat_layers(layer: Mapping[str, Shape], before: str = "model.layers.") -> Shapes:
    return {f"{before}{i}.{name}": shape for i in range(2) for name, shape in layer.items()}


def add_prefix(before: str, shapes: Mapping[str, Shape]) -> Shapes:
    return {f"{before}{name}": shape for name, shape in shapes.items()}


def rename_shapes(shapes: Mapping[str, Shape], *changes: tuple[str, str]) -> Shapes:
    """The same tensors with other names."""
    found = {}
    for name, shape in shapes.items():
        for before, after in changes:
            name = re.sub(before, after, name)
        found[name] = shape
    return found


def transpose_shapes(shapes: Mapping[str, Shape], *ends: str) -> Shapes:
    """The tensors whose names end this way, with their last two axes swapped."""
    return {
        name: (*shape[:-2], shape[-1], shape[-2]) if name.endswith(ends) else shape for name, shape in shapes.items()
    }


def declare_shapes(config: Config) -> Shapes:
    """The tensors of a declaration, each once."""
    rows = expand_names(
        tensor for tensor in count(config).tensors if tensor.role != "legacy_buffer" and tensor.tied_to is None
    )
    return {name: tensor.shape for name, tensor in rows.items()}


def drop_names(shapes: Mapping[str, Shape], pattern: str) -> Shapes:
    """The tensors whose names do not match."""
    return {name: shape for name, shape in shapes.items() if not re.search(pattern, name)}


def switch(prefix: str, d_ff: int) -> Shapes:
    """Experts of MLX."""
    shapes = read_shapes(f"gate_proj.weight 3 {d_ff} 8, up_proj.weight 3 {d_ff} 8, down_proj.weight 3 8 {d_ff}")
    return add_prefix(f"{prefix}.switch_mlp.", shapes)


LLAMA_FILE, TOGETHER_FILE, GPT2_FILE = map(declare_shapes, (LLAMA, PHI3, GPT2))
MIXTRAL_FILE, QWEN3_MOE_FILE, BERT_FILE = map(declare_shapes, (MIXTRAL, QWEN3_MOE, BERT))
MISTRAL3_FILE, QWEN3_VL_MOE_FILE = map(declare_shapes, (MISTRAL3, QWEN3_VL_MOE))
# As released: under vision_model., as CLIP and SigLIP have it of their own.
LLAVA_FILE, PALIGEMMA_FILE, GEMMA3_FILE = (
    rename_shapes(declare_shapes(config), (r"^vision_tower\.", "vision_tower.vision_model."))
    for config in (LLAVA, PALIGEMMA, GEMMA3)
)
CONV1D = ("c_attn.weight", "attn.c_proj.weight", "c_fc.weight", "mlp.c_proj.weight")
QWEN3_EXPERTS = read_shapes("mlp.experts.gate_up_proj 3 12 8, mlp.experts.down_proj 3 8 6")
# What transformers 5 calls the parts of a composite model: "llava" and "LlavaModel" there.
COMPOSITE = (
    (r"^language_model\.lm_head", "lm_head"),
    (r"^language_model\.model\.", "model.language_model."),
    (r"^(vision_tower|multi_modal_projector)\.", r"model.\1."),
)
# Meta's names, and Mistral's of its towers.
METAS = (
    (r"^(language_model\.)?model\.", ""),
    (r"^(language_model\.)?lm_head", "output"),
    ("^embed_tokens", "tok_embeddings"),
    (r"self_attn\.(.)_proj", r"attention.w\1"),
    (r"attention\.(.)_proj", r"attention.w\1"),
    ("input_layernorm", "attention_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    (r"(mlp|feed_forward)\.gate_proj", "feed_forward.w1"),
    (r"(mlp|feed_forward)\.down_proj", "feed_forward.w2"),
    (r"(mlp|feed_forward)\.up_proj", "feed_forward.w3"),
    ("block_sparse_moe", "feed_forward"),
    ("^vision_tower", "vision_encoder"),
    (r"^multi_modal_projector\.patch_merger", "patch_merger"),
    (r"^multi_modal_projector\.norm", "pre_mm_projector_norm"),
    (r"^multi_modal_projector\.linear_1", "vision_language_adapter.w_in"),
    (r"^multi_modal_projector\.linear_2", "vision_language_adapter.w_out"),
)
OF_LLAMA: dict[str, Shapes] = {
    "llama": LLAMA_FILE,
    "llama without model.": rename_shapes(LLAMA_FILE, (r"^model\.", "")),
    "llama under language_model.": add_prefix("language_model.", LLAMA_FILE),
    "llama inside a composite": rename_shapes(LLAMA_FILE, (r"^model\.", "model.language_model.")),
    "llama, together": TOGETHER_FILE,
    "llama, together without model.": rename_shapes(TOGETHER_FILE, (r"^model\.", "")),
    "llama as Meta names it": rename_shapes(LLAMA_FILE, *METAS),
    "llama as Meta names it, with its frequencies": rename_shapes(LLAMA_FILE, *METAS) | {"rope.freqs": (1,)},
    "llama of torch.compile": add_prefix("_orig_mod.", LLAMA_FILE),
    "llama, its layers of torch.compile": rename_shapes(LLAMA_FILE, (r"(layers\.\d+)", r"\1._orig_mod")),
    "llama, its layers under checkpoints in FSDP": rename_shapes(
        add_prefix("_fsdp_wrapped_module.", LLAMA_FILE),
        (r"(layers\.\d+)", r"\1._fsdp_wrapped_module._checkpoint_wrapped_module"),
    ),
    "llama of DDP": add_prefix("module.", LLAMA_FILE),
    "llama of DDP of torch.compile": add_prefix("module._orig_mod.", LLAMA_FILE),
    "llama inside PEFT": rename_shapes(
        add_prefix("base_model.model.", LLAMA_FILE), (r"(q_proj|v_proj|down_proj)\.", r"\1.base_layer.")
    ),
    "llama inside a trainer": add_prefix("model.", LLAMA_FILE),
}
SEEN_BY_V5 = (*COMPOSITE, (r"vision_model\.", ""))
FORMS: dict[str, tuple[Config, Shapes]] = {name: (LLAMA, file) for name, file in OF_LLAMA.items()} | {
    "phi3": (PHI3, TOGETHER_FILE),
    "phi3, apart": (PHI3, LLAMA_FILE),
    "phi3, its mlp apart": (
        PHI3,
        drop_names(TOGETHER_FILE, "gate_up") | {name: LLAMA_FILE[name] for name in LLAMA_FILE if ".mlp." in name},
    ),
    "llama, tied, by its head alone": (
        {**LLAMA, "tie_word_embeddings": True},
        {name: shape for name, shape in LLAMA_FILE.items() if "embed_tokens" not in name},
    ),
    "mixtral, one by one": (MIXTRAL, MIXTRAL_FILE),
    "mixtral as Mistral names it": (MIXTRAL, rename_shapes(MIXTRAL_FILE, *METAS)),
    "mixtral of MLX": (MIXTRAL, drop_names(MIXTRAL_FILE, "experts") | repeat_layers(switch("block_sparse_moe", 12))),
    "mixtral, experts together": (
        MIXTRAL,
        drop_names(MIXTRAL_FILE, "block_sparse_moe")
        | repeat_layers(
            read_shapes("mlp.gate.weight 3 8, mlp.experts.gate_up_proj 3 24 8, mlp.experts.down_proj 3 8 12")
        ),
    ),
    "qwen3_moe, experts together": (QWEN3_MOE, drop_names(QWEN3_MOE_FILE, "experts") | repeat_layers(QWEN3_EXPERTS)),
    "qwen3_moe of MLX": (QWEN3_MOE, drop_names(QWEN3_MOE_FILE, "experts") | repeat_layers(switch("mlp", 6))),
    "bert": (BERT, BERT_FILE),
    "bert of TensorFlow's names": (
        BERT,
        rename_shapes(BERT_FILE, (r"LayerNorm\.weight", "LayerNorm.gamma"), (r"LayerNorm\.bias", "LayerNorm.beta")),
    ),
    "llava as released": (LLAVA, LLAVA_FILE),
    "llava of transformers 5": (LLAVA, rename_shapes(LLAVA_FILE, *SEEN_BY_V5)),
    "llava of transformers 5, its tower as released": (LLAVA, rename_shapes(LLAVA_FILE, *COMPOSITE)),
    "paligemma as released": (PALIGEMMA, PALIGEMMA_FILE),
    "paligemma of transformers 5": (PALIGEMMA, rename_shapes(PALIGEMMA_FILE, *SEEN_BY_V5)),
    "gemma3 as released": (GEMMA3, GEMMA3_FILE),
    "gemma3 of transformers 5": (GEMMA3, rename_shapes(GEMMA3_FILE, *SEEN_BY_V5)),
    "gemma3 without the infix of its tower": (GEMMA3, rename_shapes(GEMMA3_FILE, (r"vision_model\.", ""))),
    "mistral3 as released": (MISTRAL3, MISTRAL3_FILE),
    "mistral3 as Mistral names it": (MISTRAL3, rename_shapes(MISTRAL3_FILE, *METAS)),
    "qwen3_vl_moe": (QWEN3_VL_MOE, QWEN3_VL_MOE_FILE),
    "qwen3_vl_moe as released": (
        QWEN3_VL_MOE,
        transpose_shapes(QWEN3_VL_MOE_FILE, ".gate_up_proj", "experts.down_proj"),
    ),
    "gpt2": (GPT2, GPT2_FILE),
    "gpt2 under transformer.": (GPT2, add_prefix("transformer.", GPT2_FILE)),
    "gpt2 of nanoGPT": (GPT2, add_prefix("_orig_mod.transformer.", transpose_shapes(GPT2_FILE, *CONV1D))),
    "gpt2 of MLX": (GPT2, add_prefix("model.", transpose_shapes(GPT2_FILE, *CONV1D))),
    "gpt2 with its masks and a copy of the table": (
        GPT2,
        GPT2_FILE | {"lm_head.weight": (16, 8)} | repeat_layers({"attn.bias": (1, 1, 10, 10)}, "h."),
    ),
}
