"""Parameters that the reference implementation allocates though no forward pass can reach them: `unreachable` of their
architecture.

`poison` makes those no numbers that are parts of a tensor, or that a declaration names otherwise; after that the
model's logits must still be finite: the differential test does that to every model that it runs. Where a tensor is
unreachable as a whole it does so itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any


def poison_identity_experts(model: Any) -> None:
    for layer in model.model.layers:
        layer.mlp.experts.gate_up_proj.data[model.config.n_routed_experts :] = float("nan")
        layer.mlp.router.e_score_correction_bias.data[model.config.n_routed_experts :] = (
            2.0  # scores are at most 1: they are chosen
        )


def poison_router_bias(model: Any) -> None:
    for layer in model.model.layers:
        if layer.mlp.router.classifier.bias is not None:
            layer.mlp.router.classifier.bias.data.fill_(float("nan"))


def poison_output_scales(model: Any) -> None:
    if not model.config.altup_correct_scale:
        for layer in model.model.layers:
            layer.altup.correct_output_scale.data.fill_(float("nan"))


def reads_adapter(config: Any, i: int, place: int) -> bool:
    """Whether layer i, or one that its block is shared with, reads the adapters of that place in Zamba2's block."""
    places = {layer: place for place, layer in enumerate(config.hybrid_layer_ids)}
    hybrid = [j for j, word in enumerate(config.layers_block_type) if word == "hybrid"]
    n = config.num_mem_blocks
    users = [j for use, j in enumerate(hybrid) if use % n == hybrid.index(i) % n] if config.tie_word_embeddings else [i]
    return place in [places[j] for j in users]


def poison_adapters_of_other_uses(model: Any) -> None:
    for i, word in enumerate(model.config.layers_block_type):
        for name, weight in model.model.layers[i].shared_transformer.named_parameters() if word == "hybrid" else ():
            found = re.search(r"_adapter_list\.(\d+)\.", name)
            if found and not reads_adapter(model.config, i, int(found[1])):
                weight.data.fill_(float("nan"))


def poison_expert_table(model: Any) -> None:
    model.model.dit.embed_tokens.weight.data.fill_(float("nan"))


def take_cache_once(model: Any) -> None:
    """Its classifiers pass use_cache on beside what they are given."""
    forward = model.forward
    if type(model).__name__.endswith("Classification"):
        model.forward = lambda use_cache=None, **inputs: forward(**inputs)


POISONS: dict[str, tuple[Callable[[Any], None], ...]] = {
    "gemma3n_text": (poison_output_scales,),
    "longcat_flash": (poison_identity_experts, poison_router_bias),
    "pi0": (poison_expert_table,),
    "t5gemma": (take_cache_once,),
    "zamba2": (poison_adapters_of_other_uses,),
}


def has_flaw(model: Any) -> bool:
    return model.config.model_type in POISONS


def poison(model: Any) -> None:
    """Make what cannot be reached no numbers."""
    for poison_tensors in POISONS.get(model.config.model_type, ()):
        poison_tensors(model)


ANGLES_IN_A_TABLE = ("codegen",)  # the reference computes no angle of a position beyond the maximum
UNMASKED_WITH_A_CACHE = ("fsmt",)  # with a cache, the reference masks no later tokens of a whole text


# Saved under older names that do not tell ESM's layers apart, or Mistral's, which only one vision encoder has. ERNIE
# 4.5 VL's list experts of texts and of images as one.
UNCONVERTED = ("ernie4_5_vl_moe", "esm", "mistral_large4", "mistral_large4_text")


def revert_names(model: Any, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors under the names that a model is released by."""
    from transformers.core_model_loading import revert_weight_conversion

    if not tensors or model.config.model_type in UNCONVERTED:
        return dict(tensors)
    found: dict[str, Any] = revert_weight_conversion(model, dict(tensors))
    return found


def find_head(model: Any) -> Any:
    """The LM head of a model; FSMT names its decoder's token embedding, DeBERTa's newer head its first matrix,
    ESM and MobileBERT a part of it, and Nemotron 3 Nano Omni none, because its language model has it.
    """
    from torch.nn import ModuleList

    if hasattr(model, "thinker"):
        return find_head(model.thinker)
    if model.config.model_type == "nemotron_h_omni":
        return find_head(model.language_model)
    if not getattr(model, "legacy", True) or model.config.model_type == "esm":
        return None
    if model.config.model_type == "mobilebert" and (head := model.get_output_embeddings()) is not None:
        return ModuleList([head, model.cls.predictions.dense])
    return model.model.decoder.output_projection if model.config.model_type == "fsmt" else model.get_output_embeddings()


def mend(model: Any) -> None:
    """Let the experts of NLLB-MoE get what the router chose: the reference takes a mask of them for their indices, so
    that no token visits any but the first two.

    Source: modeling_nllb_moe.py of transformers 4.57.
    """
    for module in model.modules():
        if type(module).__name__ == "NllbMoeExperts":
            module.forward = MethodType(visit_chosen_experts, module)


def visit_chosen_experts(experts: Any, x: Any, mask: Any, weights: Any) -> Any:
    found = sum(experts[f"expert_{i}"](x) * weights[:, i, None] for i in range(experts.num_experts))
    return found * (1 - experts.moe_token_dropout)


def mend_name(model_type: str, name: str) -> str:
    """The name of a tensor of a model in released files, if the reference saves it under another.

    Kimi K2.5: it calls the layers of the language model blocks, too, and does not rename all of the encoder. The
    names are those that its own loading rules read. Qianfan-OCR: "encoder" in the names of the
    encoder's layers gets into those of the language model too. HyperCLOVA X Vision: it removes a prefix when it loads a
    file and does not put it back.
    """
    if model_type == "qianfan_ocr":
        return name.replace("language_model.model.encoder.", "language_model.model.")
    if model_type == "hyperclovax_vision_v2":
        return re.sub(r"^model\.language_model\.(?!lm_head|model\.)", "model.language_model.model.", name)
    if model_type != "kimi_k25":
        return name
    name = name.replace("language_model.model.blocks.", "language_model.model.layers.")
    return name.replace("vision_tower.encoder.patch_embed.", "vision_tower.patch_embed.")


MOLMO_TABLES = ("model.transformer.wte.embedding", "model.transformer.wte.new_embedding")


def mend_arrays(model: Any, saved: dict[str, Any]) -> dict[str, Any]:
    """The same for the tensors themselves."""
    if model.config.model_type != "molmo2":
        return saved
    table = model.get_input_embeddings().weight.detach().numpy()
    n = model.config.text_config.vocab_size
    return {**saved, **dict(zip(MOLMO_TABLES, (table[:n], table[n:])))}


def mend_shapes(model: Any, saved: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Tensors that the reference saves wrongly, as they are in released files and as it reads them.

    OLMo Hybrid: it joins the convolutions of q, k and v when it loads them and cuts them into three equal parts when it
    saves them, though v is wider: what it saves it cannot load as what it was.
    """
    model_type = model.config.model_type  # reading it takes as long as mending a name
    saved = {mend_name(model_type, name): shape for name, shape in saved.items()}
    if model_type == "molmo2" and MOLMO_TABLES[0] in saved:  # halves of a table that it joined
        c = model.config.text_config
        rows = (c.vocab_size, c.additional_vocab_size)
        return {**saved, **{name: (n, c.hidden_size) for name, n in zip(MOLMO_TABLES, rows)}}
    if (
        type(model).__name__ == "OpenAIGPTDoubleHeadsModel" and model.config.tie_word_embeddings
    ):  # tied the other way round
        return {name.replace("lm_head", "transformer.tokens_embed"): shape for name, shape in saved.items()}
    if model_type != "olmo_hybrid":
        return saved
    c = model.config
    widths = {
        "q": c.linear_num_key_heads * c.linear_key_head_dim,
        "v": c.linear_num_value_heads * c.linear_value_head_dim,
    }
    found = dict(saved)
    for name, shape in saved.items():
        if stream := re.search(r"linear_attn\.([qkv])_conv1d\.weight$", name):
            found[name] = (widths["v" if stream[1] == "v" else "q"], *shape[1:])
    return found
