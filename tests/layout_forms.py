"""The same small models in the forms in which files hold them: names and shapes, by hand.

Sources: of Meta's names and Mistral's transformers, models/mistral/convert_mistral_weights_to_hf.py and
models/mistral3/convert_mistral3_weights_to_hf.py; of MLX's ml-explore/mlx-lm, mlx_lm/models; of nanoGPT's
karpathy/nanoGPT, model.py; of towers the indices of released models and transformers 5.23, conversion_mapping.py; of
Qwen3-VL-MoE both ways the same file, `check_dims`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = dict[str, Shape]
Config: TypeAlias = dict[str, Any]

# Two layers, width 8, 4 heads of 2 over 2 heads of keys and values, MLP 12, 16 tokens.
SIZES: Config = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 16,
}
LLAMA: Config = {"model_type": "llama", **SIZES, "intermediate_size": 12}
PHI3: Config = {"model_type": "phi3", **SIZES, "intermediate_size": 12, "pad_token_id": 0}
MIXTRAL: Config = {
    "model_type": "mixtral",
    **SIZES,
    "intermediate_size": 12,
    "num_local_experts": 3,
    "num_experts_per_tok": 2,
}
QWEN3_MOE: Config = {
    "model_type": "qwen3_moe",
    **SIZES,
    "head_dim": 2,
    "moe_intermediate_size": 6,
    "num_experts": 3,
    "num_experts_per_tok": 2,
    "intermediate_size": 12,
}
GPT2: Config = {"model_type": "gpt2", "n_embd": 8, "n_layer": 2, "n_head": 2, "vocab_size": 16, "n_positions": 10}
BERT: Config = {
    "model_type": "bert",
    "architectures": ["BertForMaskedLM"],
    **SIZES,
    "intermediate_size": 12,
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
LLAVA: Config = {
    "model_type": "llava",
    "text_config": LLAMA,
    "vision_config": {"model_type": "clip_vision_model", **EYES},
}
HEADLESS: Config = {"model_type": "siglip_vision_model", **EYES, "vision_use_head": False}
GEMMA: Config = {**SIZES, "head_dim": 2, "intermediate_size": 12}
PALIGEMMA: Config = {
    "model_type": "paligemma",
    "text_config": {"model_type": "gemma", **GEMMA},
    "vision_config": HEADLESS,
    "projection_dim": 8,
}
GEMMA3: Config = {
    "model_type": "gemma3",
    "text_config": {"model_type": "gemma3_text", **GEMMA},
    "vision_config": HEADLESS,
    "mm_tokens_per_image": 4,
}
MISTRAL3: Config = {
    "model_type": "mistral3",
    "text_config": {"model_type": "mistral", **SIZES, "intermediate_size": 12, "head_dim": 2},
    "vision_config": {"model_type": "pixtral", **EYES},
    "spatial_merge_size": 2,
    "tie_word_embeddings": False,
}
QWEN3_VL_MOE: Config = {
    "model_type": "qwen3_vl_moe",
    "text_config": {**QWEN3_MOE, "model_type": "qwen3_vl_moe_text", "tie_word_embeddings": False},
    "tie_word_embeddings": False,
    "vision_config": {
        "depth": 2,
        "hidden_size": 4,
        "intermediate_size": 6,
        "num_heads": 2,
        "out_hidden_size": 8,
        "patch_size": 2,
        "num_position_embeddings": 9,
        "deepstack_visual_indexes": [0],
    },
}

TABLES: Shapes = {"model.embed_tokens.weight": (16, 8), "model.norm.weight": (8,), "lm_head.weight": (16, 8)}
NORMS: Shapes = {"input_layernorm.weight": (8,), "post_attention_layernorm.weight": (8,)}
APART: Shapes = {
    "self_attn.q_proj.weight": (8, 8),
    "self_attn.k_proj.weight": (4, 8),
    "self_attn.v_proj.weight": (4, 8),
    "self_attn.o_proj.weight": (8, 8),
}
MLP: Shapes = {"mlp.gate_proj.weight": (12, 8), "mlp.up_proj.weight": (12, 8), "mlp.down_proj.weight": (8, 12)}
TOGETHER: Shapes = {
    "self_attn.qkv_proj.weight": (16, 8),
    "self_attn.o_proj.weight": (8, 8),
    "mlp.gate_up_proj.weight": (24, 8),
    "mlp.down_proj.weight": (8, 12),
}
QK_NORMS: Shapes = {"self_attn.q_norm.weight": (2,), "self_attn.k_norm.weight": (2,)}
GPT2_LAYER: Shapes = {
    "ln_1.weight": (8,),
    "ln_1.bias": (8,),
    "attn.c_attn.weight": (8, 24),
    "attn.c_attn.bias": (24,),
    "attn.c_proj.weight": (8, 8),
    "attn.c_proj.bias": (8,),
    "ln_2.weight": (8,),
    "ln_2.bias": (8,),
    "mlp.c_fc.weight": (8, 32),
    "mlp.c_fc.bias": (32,),
    "mlp.c_proj.weight": (32, 8),
    "mlp.c_proj.bias": (8,),
}
GPT2_TABLES: Shapes = {"wte.weight": (16, 8), "wpe.weight": (10, 8), "ln_f.weight": (8,), "ln_f.bias": (8,)}


def repeat_layers(layer: Mapping[str, Shape], before: str = "model.layers.") -> Shapes:
    return {f"{before}{i}.{name}": shape for i in range(2) for name, shape in layer.items()}


def repeat_experts(layer: Mapping[str, Shape]) -> Shapes:
    """The three experts of a layer."""
    return {name.replace("*", str(i)): shape for i in range(3) for name, shape in layer.items()}


def add_biases(matrices: Mapping[str, Shape]) -> Shapes:
    """Matrices [out, in], norms, convolutions, and their biases."""
    return {
        f"{name}.{ending}": of
        for name, shape in matrices.items()
        for ending, of in (("weight", shape), ("bias", shape[:1]))
    }


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


LLAMA_FILE = TABLES | repeat_layers(NORMS | APART | MLP)
GPT2_FILE = GPT2_TABLES | repeat_layers(GPT2_LAYER, "h.")
CONV1D = ("c_attn.weight", "attn.c_proj.weight", "c_fc.weight", "mlp.c_proj.weight")
MIXTRAL_FILE = (
    TABLES
    | repeat_layers(NORMS | APART | {"block_sparse_moe.gate.weight": (3, 8)})
    | repeat_layers(
        repeat_experts(
            {"block_sparse_moe.experts.*.w1.weight": (12, 8), "block_sparse_moe.experts.*.w3.weight": (12, 8)}
        )
    )
    | repeat_layers(repeat_experts({"block_sparse_moe.experts.*.w2.weight": (8, 12)}))
)
BERT_LAYER = add_biases(
    {
        "attention.self.query": (8, 8),
        "attention.self.key": (8, 8),
        "attention.self.value": (8, 8),
        "attention.output.dense": (8, 8),
        "attention.output.LayerNorm": (8,),
        "intermediate.dense": (12, 8),
        "output.dense": (8, 12),
        "output.LayerNorm": (8,),
    }
)
BERT_FILE = (
    {
        f"bert.embeddings.{name}_embeddings.weight": shape
        for name, shape in {"word": (16, 8), "position": (10, 8), "token_type": (2, 8)}.items()
    }
    | repeat_layers(BERT_LAYER, "bert.encoder.layer.")
    | add_biases(
        {
            "bert.embeddings.LayerNorm": (8,),
            "cls.predictions.transform.dense": (8, 8),
            "cls.predictions.transform.LayerNorm": (8,),
        }
    )
    | {"cls.predictions.bias": (16,)}
)
# As released: under vision_model., as CLIP and SigLIP have it of their own.
SEEING = add_biases(
    {
        "self_attn.q_proj": (4, 4),
        "self_attn.k_proj": (4, 4),
        "self_attn.v_proj": (4, 4),
        "self_attn.out_proj": (4, 4),
        "layer_norm1": (4,),
        "layer_norm2": (4,),
        "mlp.fc1": (6, 4),
        "mlp.fc2": (4, 6),
    }
)
TOWER = "vision_tower.vision_model."
CLIP = (
    {
        f"{TOWER}embeddings.class_embedding": (4,),
        f"{TOWER}embeddings.patch_embedding.weight": (4, 3, 2, 2),
        f"{TOWER}embeddings.position_embedding.weight": (5, 4),
    }
    | add_biases({f"{TOWER}pre_layrnorm": (4,), f"{TOWER}post_layernorm": (4,)})
    | repeat_layers(SEEING, f"{TOWER}encoder.layers.")
)
SIGLIP = (
    add_biases({f"{TOWER}embeddings.patch_embedding": (4, 3, 2, 2), f"{TOWER}post_layernorm": (4,)})
    | {f"{TOWER}embeddings.position_embedding.weight": (4, 4)}
    | repeat_layers(SEEING, f"{TOWER}encoder.layers.")
)
SPOKEN = {f"language_model.{name}": shape for name, shape in LLAMA_FILE.items()}
LLAVA_FILE = (
    SPOKEN | CLIP | add_biases({"multi_modal_projector.linear_1": (8, 4), "multi_modal_projector.linear_2": (8, 8)})
)
TIED = {name: shape for name, shape in SPOKEN.items() if "lm_head" not in name}
PALIGEMMA_FILE = TIED | SIGLIP | add_biases({"multi_modal_projector.linear": (8, 4)})
MORE_NORMS: Shapes = {"pre_feedforward_layernorm.weight": (8,), "post_feedforward_layernorm.weight": (8,)}
GEMMA3_FILE = (
    TIED
    | repeat_layers(QK_NORMS | MORE_NORMS, "language_model.model.layers.")
    | SIGLIP
    | {
        "multi_modal_projector.mm_input_projection_weight": (4, 8),
        "multi_modal_projector.mm_soft_emb_norm.weight": (4,),
    }
)
# What transformers 5 calls the parts of a composite model: "llava" and "LlavaModel" there.
COMPOSITE = (
    (r"^language_model\.lm_head", "lm_head"),
    (r"^language_model\.model\.", "model.language_model."),
    (r"^(vision_tower|multi_modal_projector)\.", r"model.\1."),
)
PIXTRAL: Shapes = {
    "attention.q_proj.weight": (4, 4),
    "attention.k_proj.weight": (4, 4),
    "attention.v_proj.weight": (4, 4),
    "attention.o_proj.weight": (4, 4),
    "feed_forward.gate_proj.weight": (6, 4),
    "feed_forward.up_proj.weight": (6, 4),
    "feed_forward.down_proj.weight": (4, 6),
    "attention_norm.weight": (4,),
    "ffn_norm.weight": (4,),
}
MISTRAL3_FILE = (
    SPOKEN
    | {"vision_tower.patch_conv.weight": (4, 3, 2, 2), "vision_tower.ln_pre.weight": (4,)}
    | repeat_layers(PIXTRAL, "vision_tower.transformer.layers.")
    | {"multi_modal_projector.norm.weight": (4,), "multi_modal_projector.patch_merger.merging_layer.weight": (4, 16)}
    | {"multi_modal_projector.linear_1.weight": (8, 4), "multi_modal_projector.linear_2.weight": (8, 8)}
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
MLX_EXPERTS: Shapes = {
    "switch_mlp.gate_proj.weight": (3, 6, 8),
    "switch_mlp.up_proj.weight": (3, 6, 8),
    "switch_mlp.down_proj.weight": (3, 8, 6),
}
VISUAL = add_biases(
    {
        "attn.qkv": (12, 4),
        "attn.proj": (4, 4),
        "mlp.linear_fc1": (6, 4),
        "mlp.linear_fc2": (4, 6),
        "norm1": (4,),
        "norm2": (4,),
    }
)
MERGER: Shapes = {"linear_fc1": (16, 16), "linear_fc2": (8, 16)}
QWEN3_VL_MOE_FILE = (
    rename_shapes(TABLES, (r"^model\.", "model.language_model."))
    | repeat_layers(NORMS | APART | QK_NORMS | {"mlp.gate.weight": (3, 8)}, "model.language_model.layers.")
    | repeat_layers(
        {"mlp.experts.gate_up_proj": (3, 12, 8), "mlp.experts.down_proj": (3, 8, 6)}, "model.language_model.layers."
    )
    | add_biases({"model.visual.patch_embed.proj": (4, 3, 2, 2, 2)})
    | {"model.visual.pos_embed.weight": (9, 4)}
    | repeat_layers(VISUAL, "model.visual.blocks.")
    | add_biases({f"model.visual.merger.{name}": shape for name, shape in (MERGER | {"norm": (4,)}).items()})
    | add_biases(
        {f"model.visual.deepstack_merger_list.0.{name}": shape for name, shape in (MERGER | {"norm": (16,)}).items()}
    )
)
FORMS: dict[str, tuple[Config, Shapes]] = {
    "llama": (LLAMA, LLAMA_FILE),
    "llama without model.": (LLAMA, {name.removeprefix("model."): shape for name, shape in LLAMA_FILE.items()}),
    "llama under language_model.": (LLAMA, {f"language_model.{name}": shape for name, shape in LLAMA_FILE.items()}),
    "llama inside a composite": (
        LLAMA,
        {name.replace("model.", "model.language_model."): shape for name, shape in LLAMA_FILE.items()},
    ),
    "llama, together": (LLAMA, TABLES | repeat_layers(NORMS | TOGETHER)),
    "llama, together without model.": (
        LLAMA,
        {n.removeprefix("model."): shape for n, shape in (TABLES | repeat_layers(NORMS | TOGETHER)).items()},
    ),
    "phi3": (PHI3, TABLES | repeat_layers(NORMS | TOGETHER)),
    "phi3, apart": (PHI3, TABLES | repeat_layers(NORMS | APART | MLP)),
    "phi3, its mlp apart": (
        PHI3,
        TABLES | repeat_layers(NORMS | MLP | {n: s for n, s in TOGETHER.items() if n.startswith("self_attn")}),
    ),
    "llama as Meta names it": (LLAMA, rename_shapes(LLAMA_FILE, *METAS)),
    "llama as Meta names it, with its frequencies": (LLAMA, rename_shapes(LLAMA_FILE, *METAS) | {"rope.freqs": (1,)}),
    "llama of torch.compile": (LLAMA, {f"_orig_mod.{name}": shape for name, shape in LLAMA_FILE.items()}),
    "llama, its layers of torch.compile": (LLAMA, rename_shapes(LLAMA_FILE, (r"(layers\.\d+)", r"\1._orig_mod"))),
    "llama, its layers under checkpoints in FSDP": (
        LLAMA,
        rename_shapes(
            LLAMA_FILE,
            ("^", "_fsdp_wrapped_module."),
            (r"(layers\.\d+)", r"\1._fsdp_wrapped_module._checkpoint_wrapped_module"),
        ),
    ),
    "llama of DDP": (LLAMA, {f"module.{name}": shape for name, shape in LLAMA_FILE.items()}),
    "llama of DDP of torch.compile": (LLAMA, {f"module._orig_mod.{name}": shape for name, shape in LLAMA_FILE.items()}),
    "llama inside PEFT": (
        LLAMA,
        rename_shapes(LLAMA_FILE, ("^", "base_model.model."), (r"(q_proj|v_proj|down_proj)\.", r"\1.base_layer.")),
    ),
    "llama inside a trainer": (LLAMA, {f"model.{name}": shape for name, shape in LLAMA_FILE.items()}),
    "llama, tied, by its head alone": (
        {**LLAMA, "tie_word_embeddings": True},
        {name: shape for name, shape in LLAMA_FILE.items() if "embed_tokens" not in name},
    ),
    "mixtral, one by one": (MIXTRAL, MIXTRAL_FILE),
    "mixtral as Mistral names it": (MIXTRAL, rename_shapes(MIXTRAL_FILE, *METAS)),
    "mixtral of MLX": (
        MIXTRAL,
        TABLES
        | repeat_layers(
            NORMS
            | APART
            | {"block_sparse_moe.gate.weight": (3, 8), "block_sparse_moe.switch_mlp.gate_proj.weight": (3, 12, 8)}
        )
        | repeat_layers(
            {
                "block_sparse_moe.switch_mlp.up_proj.weight": (3, 12, 8),
                "block_sparse_moe.switch_mlp.down_proj.weight": (3, 8, 12),
            }
        ),
    ),
    "mixtral, experts together": (
        MIXTRAL,
        TABLES
        | repeat_layers(
            NORMS
            | APART
            | {"mlp.gate.weight": (3, 8), "mlp.experts.gate_up_proj": (3, 24, 8), "mlp.experts.down_proj": (3, 8, 12)}
        ),
    ),
    "qwen3_moe, experts together": (
        QWEN3_MOE,
        TABLES
        | repeat_layers(
            NORMS
            | APART
            | QK_NORMS
            | {"mlp.gate.weight": (3, 8), "mlp.experts.gate_up_proj": (3, 12, 8), "mlp.experts.down_proj": (3, 8, 6)}
        ),
    ),
    "qwen3_moe of MLX": (
        QWEN3_MOE,
        TABLES
        | repeat_layers(
            NORMS
            | APART
            | QK_NORMS
            | {"mlp.gate.weight": (3, 8)}
            | {f"mlp.{name}": shape for name, shape in MLX_EXPERTS.items()}
        ),
    ),
    "bert": (BERT, BERT_FILE),
    "bert of TensorFlow's names": (
        BERT,
        rename_shapes(BERT_FILE, (r"LayerNorm\.weight", "LayerNorm.gamma"), (r"LayerNorm\.bias", "LayerNorm.beta")),
    ),
    "llava as released": (LLAVA, LLAVA_FILE),
    "llava of transformers 5": (LLAVA, rename_shapes(LLAVA_FILE, *COMPOSITE, (r"vision_model\.", ""))),
    "llava of transformers 5, its tower as released": (LLAVA, rename_shapes(LLAVA_FILE, *COMPOSITE)),
    "paligemma as released": (PALIGEMMA, PALIGEMMA_FILE),
    "paligemma of transformers 5": (PALIGEMMA, rename_shapes(PALIGEMMA_FILE, *COMPOSITE, (r"vision_model\.", ""))),
    "gemma3 as released": (GEMMA3, GEMMA3_FILE),
    "gemma3 of transformers 5": (GEMMA3, rename_shapes(GEMMA3_FILE, *COMPOSITE, (r"vision_model\.", ""))),
    "gemma3 without the infix of its tower": (GEMMA3, rename_shapes(GEMMA3_FILE, (r"vision_model\.", ""))),
    "mistral3 as released": (MISTRAL3, MISTRAL3_FILE),
    "mistral3 as Mistral names it": (MISTRAL3, rename_shapes(MISTRAL3_FILE, *METAS)),
    "qwen3_vl_moe": (QWEN3_VL_MOE, QWEN3_VL_MOE_FILE),
    "qwen3_vl_moe as released": (
        QWEN3_VL_MOE,
        transpose_shapes(QWEN3_VL_MOE_FILE, ".gate_up_proj", "experts.down_proj"),
    ),
    "gpt2": (GPT2, GPT2_FILE),
    "gpt2 under transformer.": (GPT2, {f"transformer.{name}": shape for name, shape in GPT2_FILE.items()}),
    "gpt2 of nanoGPT": (
        GPT2,
        {f"_orig_mod.transformer.{name}": shape for name, shape in transpose_shapes(GPT2_FILE, *CONV1D).items()},
    ),
    "gpt2 of MLX": (GPT2, {f"model.{name}": shape for name, shape in transpose_shapes(GPT2_FILE, *CONV1D).items()}),
    "gpt2 with its masks and a copy of the table": (
        GPT2,
        GPT2_TABLES | {"lm_head.weight": (16, 8)} | repeat_layers(GPT2_LAYER | {"attn.bias": (1, 1, 10, 10)}, "h."),
    ),
}
