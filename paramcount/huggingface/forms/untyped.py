"""Configs of the first years, which state no model type: BERT, ALBERT, GPT, GPT-2, XLNet and others, by their keys.

Sources: github google-research/bert, modeling.py (BertConfig); google-research/albert, modeling.py (AlbertConfig);
openai/gpt-2, src/model.py (default_hparams); zihangdai/xlnet, xlnet.py (XLNetConfig); the config classes of
pytorch-transformers 1.0 for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from paramcount.errors import ParamcountError, join_words
from paramcount.huggingface.forms.form import ConfigForm, Document, Translation, rename_keys, require


class Signature(NamedTuple):
    """The keys by which the configs of one model type are known."""

    model_type: str
    needs: frozenset[str]
    lacks: frozenset[str] = frozenset()
    agrees: Callable[[Document], bool] = lambda document: True

    def fits(self, document: Document) -> bool:
        found = set(document)
        return self.needs <= found and self.lacks.isdisjoint(found) and self.agrees(document)


def keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


def has_segments(document: Document) -> bool:
    """BERT tells segments of a text apart, RoBERTa does not."""
    n = document["type_vocab_size"]
    return type(n) is int and n > 1


def skips_positions(document: Document) -> bool:
    """RoBERTa has one segment, and two positions more than a text has tokens."""
    n = document["max_position_embeddings"]
    return document["type_vocab_size"] == 1 and type(n) is int and n % 8 == 2


ENCODER = keys("hidden_size num_hidden_layers num_attention_heads intermediate_size max_position_embeddings vocab_size")
SEGMENTS = ENCODER | {"type_vocab_size"}
# Keys that only other types with the sizes of BERT have.
OTHER_ENCODERS = keys(
    "embedding_size num_hidden_groups inner_group_num net_structure_type relative_attention position_biased_input "
    "attention_window block_size num_key_value_heads rope_theta true_hidden_size intra_bottleneck_size d_model "
    "entity_vocab_size max_2d_position_embeddings quant_mode head_ratio num_buckets vision_config encoder_width "
    "fusion_layer max_relative_position visual_embedding_dim task_type_vocab_size rotary_value text_config "
    "num_landmarks segment_means_seq_len input_embedding_size output_embedding_size enable_pronunciation "
    "shape_vocab_size use_flash_attn lora_adaptations adapter_reduction_factor languages n_embd num_block_per_row "
    "position_embedding_base use_rotary_position_embeddings rope_parameters rope_scaling rotary_emb_base "
    "emb_pooler lora_alpha pad_vocab_size_multiple"
)
# Keys that transformers writes since its configs have a model type, so that a file with them has lost it.
LATER = keys("transformers_version position_embedding_type use_cache classifier_dropout is_encoder_decoder return_dict")
GPT = keys("n_embd n_layer n_head")
T5 = keys("d_model d_ff d_kv num_layers num_heads vocab_size relative_attention_num_buckets")
SIGNATURES = (
    Signature("bert", SEGMENTS, OTHER_ENCODERS, has_segments),
    Signature("roberta", SEGMENTS, OTHER_ENCODERS | LATER, skips_positions),
    Signature("albert", SEGMENTS | keys("embedding_size num_hidden_groups inner_group_num")),
    Signature("openai-gpt", GPT | keys("n_positions vocab_size afn")),
    Signature("ctrl", GPT | keys("n_positions vocab_size dff")),
    Signature("gpt2", GPT | keys("n_positions vocab_size"),
              keys("afn dff rotary_dim multi_query kv_channels intermediate_size hidden_size no_bias")),
    Signature("xlnet", keys("d_model n_layer n_head d_inner"), keys("d_embed cutoffs ssm_cfg")),
    Signature("distilbert", keys("dim n_layers n_heads hidden_dim vocab_size max_position_embeddings"),
              keys("norm_eps multiple_of head_dim n_kv_heads")),
    Signature("xlm", keys("emb_dim n_layers n_heads max_position_embeddings"),
              keys("dim hidden_dim pre_norm layerdrop")),
    Signature("moshi_released", keys("dim text_card card n_q dep_q num_heads num_layers depformer_dim")),
    Signature("t5", T5 | {"n_positions"}, keys("local_radius num_experts max_2d_position_embeddings")),
)  # fmt: skip
# Candidates that have the same keys, where a value does not tell them apart.
AMBIGUOUS = (
    (SEGMENTS, OTHER_ENCODERS, ("bert", "roberta", "roberta-prelayernorm", "xlm-roberta-xl")),
    (T5, keys("local_radius num_experts n_positions"), ("t5", "mt5", "umt5")),
    (SEGMENTS | {"embedding_size"}, keys("num_hidden_groups"), ("electra", "albert", "convbert", "mobilebert")),
)
OLD_NAMES = {
    "xlnet": {"n_token": "vocab_size"},
    "xlm": {"n_words": "vocab_size"},
}
MAIN_SIZES = {"xlnet": ("vocab_size",), "xlm": ("vocab_size",)}
# What the first configs state beside the sizes, and no parameter depends on.
UNUSED = keys(
    "pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type directionality "
    "net_structure_type gap_size num_memory_blocks down_scale_factor finetuning_task torchscript pruned_heads "
    "output_attentions output_hidden_states n_ctx n_special predict_special_tokens num_labels max_vocab id2label "
    "label2id same_length reuse_len mem_len bi_data clamp_len untie_r"
)
HPARAMS_KEYS = {"n_vocab": "vocab_size", "n_ctx": "n_positions"}


def list_candidates(document: Document) -> list[str]:
    return [signature.model_type for signature in SIGNATURES if signature.fits(document)]


def matches(document: Document) -> bool:
    """Whether a file without model type and class has all sizes of a known type."""
    if "model_type" in document or document.get("architectures") or "auto_map" in document:
        return False
    if any(isinstance(key, str) and ("expert" in key or key.startswith("moe_")) for key in document):  # a later type
        return False
    return bool(list_candidates(document) or find_ambiguous(document))


def find_ambiguous(document: Document) -> tuple[str, ...]:
    found = set(document)
    return next((types for needs, lacks, types in AMBIGUOUS if needs <= found and lacks.isdisjoint(found)), ())


def translate(document: Document) -> Translation:
    """The config with the model type that its keys belong to."""
    candidates = list_candidates(document)
    if len(candidates) != 1:
        names = join_words(candidates or find_ambiguous(document))
        problem = "is missing, and the keys fit several types"
        raise ParamcountError(problem, where="model_type", expected=f"one of the candidates: {names}")
    (model_type,) = candidates
    found = rename_keys(document, OLD_NAMES.get(model_type, {}), UNUSED)
    require(found, *MAIN_SIZES.get(model_type, ()))
    return Translation({"model_type": model_type, **found}, note=describe(model_type))


def describe(model_type: str) -> str:
    from paramcount.architectures import architecture
    from paramcount.architectures.classes import get_reference_class

    reference = get_reference_class(architecture(model_type))
    return f"model_type is missing; read as {model_type} by its keys, counted as {reference}"


def matches_hparams(document: Document) -> bool:
    return "model_type" not in document and GPT | {"n_vocab", "n_ctx"} <= set(document)


def translate_hparams(document: Document) -> Translation:
    """GPT-2's first file, from which the code takes all sizes."""
    return Translation({"model_type": "gpt2", **rename_keys(document, HPARAMS_KEYS)})


HPARAMS = ConfigForm("OpenAI's hparams.json of GPT-2", matches_hparams, translate_hparams, HPARAMS_KEYS)
FORM = ConfigForm("a config without model_type", matches, translate)
