"""Multimodal models: configs with a section for the language model, and how the reference reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcount.architectures.encoders import SECTION_ENCODERS, load_encoder
from paramcount.errors import ParamcountError, describe_value, find_nearest, join_words, list_names

if TYPE_CHECKING:
    from paramcount.sizes import Sizes


class Composite(NamedTuple):
    """How the reference reads the language model of a multimodal config."""

    default_type: str  # the language model's type if its section has no model_type
    section: str = "text_config"  # the section of the language model
    classes: Mapping[str, str] = {}  # {class: model type}, if the section's `architectures` decides the type
    versions: Mapping[str, str] = {}  # {`version`: model type}, if that key decides the type
    tie_rule: str = "top"  # which tie_word_embeddings counts: a key of TIE_RULES
    default_tie: bool = False  # the top-level tie_word_embeddings if it is missing
    ignores_model_type: bool = False  # the section's own model_type is ignored
    is_flat: bool = False  # the language model's keys are at the top level if there is no section
    default_section: Mapping[str, Any] = {}  # the section if it is missing
    fills_missing_keys: bool = False  # `default_section` also supplies single missing keys
    old_type: str = ""  # an older name of `default_type`
    needs_model_type: bool = False  # the section must have a model_type
    other_sections: tuple[str, ...] = ("vision_config",)  # the sections of the other parts
    supported_types: tuple[str, ...] = ()  # the valid types of the language model, if not LANGUAGE_MODEL_TYPES
    default_encoder: str = ""  # the vision encoder's type if its section has no model_type
    encoders: tuple[str, ...] = tuple(SECTION_ENCODERS)  # the valid types of the vision encoder
    has_old_tie_key: bool = False  # at the top level, where it counts if both are there
    default_encoder_section: Mapping[str, Any] = {}  # the vision encoder's section if it is missing


# Where the reference reads tie_word_embeddings.
TIE_RULES = {
    "top": "at the top level",
    "text": "in the section of the language model",
    "either": "at the top level or in the section",
    "text unless top": "at the top level; in the section if it is missing or null there",
    "outside": "at the top level, with the sizes of the LM head",
    "never": "nowhere: the LM head is never tied",
}
TIE_KEY = "tie_word_embeddings"
OLD_TIE_KEY = "tie_embedding"  # of LFM2
OVIS_HEAD = {"vocab_size": 151643, "hidden_size": 1536}  # top-level keys of an untied LM head, with their defaults
AUDIO = ("audio_config",)
MISTRAL_3 = {
    "head_dim": 128, "hidden_size": 5120, "intermediate_size": 32768, "num_attention_heads": 32,
    "num_hidden_layers": 40, "num_key_value_heads": 8, "sliding_window": None, "vocab_size": 131072,
}  # fmt: skip
GOT = {
    "vocab_size": 151860,
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
}
SMALL_QWEN_3 = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
}
ASR_QWEN_3 = SMALL_QWEN_3 | {"hidden_size": 2048, "intermediate_size": 6144, "head_dim": 128}
LIGHTON = SMALL_QWEN_3 | {"head_dim": 128, "sliding_window": None, "vocab_size": 151936}
GLM_ASR = {
    "vocab_size": 59264, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 4,
}  # fmt: skip
VOXTRAL = {
    "vocab_size": 131072,
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 30,
    "num_key_value_heads": 8,
    "head_dim": 128,
}
PALIGEMMA = {
    "hidden_size": 2048, "num_hidden_layers": 18, "intermediate_size": 16384, "num_attention_heads": 8,
    "num_key_value_heads": 1, "vocab_size": 257152,
}  # fmt: skip
FAST_VLM = {
    "hidden_size": 3584, "vocab_size": 152128, "intermediate_size": 18944, "num_attention_heads": 28,
    "num_key_value_heads": 4, "num_hidden_layers": 28,
}  # fmt: skip
CLIP = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "patch_size": 14,
    "image_size": 336,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
}
SMALL_CLIP = CLIP | {"image_size": 224}
SIGLIP = {
    "hidden_size": 1152, "intermediate_size": 4304, "patch_size": 14, "image_size": 384, "num_hidden_layers": 26,
    "num_attention_heads": 16, "vision_use_head": False,
}  # fmt: skip
COHERE_SIGLIP = {
    "hidden_size": 1152, "intermediate_size": 3072, "image_size": 512, "num_hidden_layers": 27,
    "num_attention_heads": 12,
}  # fmt: skip
PIXTRAL = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "patch_size": 14,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
}
LARGE_PIXTRAL = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "patch_size": 14,
    "num_hidden_layers": 30,
    "num_attention_heads": 16,
    "hidden_act": "silu",
}
PALIGEMMA_VISION = {
    "hidden_size": 1152, "intermediate_size": 4096, "patch_size": 14, "image_size": 224, "num_hidden_layers": 27,
    "num_attention_heads": 16, "vision_use_head": False,
}  # fmt: skip
INTERNVL_LANGUAGES = {
    "GptOssForCausalLM": "gpt_oss", "InternLM2ForCausalLM": "internlm2", "LlamaForCausalLM": "llama",
    "Phi3ForCausalLM": "phi3", "Qwen2ForCausalLM": "qwen2", "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
}  # fmt: skip
BLIP_LANGUAGES = ("llama", "opt", "t5")
# language models whose config has logits_scaling
SCALED_LOGITS = (
    "granite", "granite_swa", "granitemoe", "granitemoe_swa", "granitemoehybrid", "granitemoeshared", "hyperclovax",
    "minicpm3",
)  # fmt: skip
MINICPM_V = {"2.5": "llama", "2.6": "qwen2", "4.0": "llama", "4.5": "qwen3"}
H2OVL_LANGUAGES = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "mistral"}

# The valid model types of a language model's section. The reference adds an LM head without bias to each of them.
LANGUAGE_MODEL_TYPES = frozenset((
    "afmoe", "apertus", "arcee", "aria_text", "axk1", "axk2", "bamba", "beam", "biogpt", "bitnet", "cohere",
    "cohere2", "cohere2_moe", "cohere_compass_text", "cwm", "deepseek_v2", "deepseek_v3", "deepseek_v32",
    "deepseek_v4", "diffllama", "doge", "dots1", "dots3_note_text", "ernie4_5", "ernie4_5_moe", "exaone4",
    "exaone_moe", "falcon_h1", "flex_olmo", "flint", "gemma", "gemma2", "gemma3_text", "gemma3n_text",
    "gemma4_text", "gemma4_unified_text", "glm", "glm4", "glm4_moe", "glm4_moe_lite", "glm_moe_dsa", "gpt_oss",
    "granite", "granite_swa", "granitemoe", "granitemoe_swa", "granitemoehybrid", "granitemoeshared", "helium",
    "hrm_text", "hunyuan_v1_dense", "hunyuan_v1_moe", "hy_v3", "hy_v4", "hyperclovax", "internlm3", "iquestcoder",
    "jais2", "jamba", "jetmoe", "kolibri1", "laguna", "lfm2", "lfm2_moe", "lfm3", "llama", "llama4_text", "mellum",
    "mimo_v2_flash", "minicpm3", "minimax", "minimax_m2", "minimax_m3_vl_text", "ministral", "ministral3",
    "mistral", "mistral4", "mixtral", "nanochat", "nemotron", "olmo", "olmo2", "olmo3", "olmoe", "persimmon",
    "phi3", "phimoe", "qwen2", "qwen2_moe", "qwen3", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_moe", "qwen3_next",
    "recurrent_gemma", "seed_oss", "smollm3", "solar_open", "stablelm", "starcoder2", "vaultgemma", "xglm", "youtu",
    "zamba", "zamba2", "zaya",
))  # fmt: skip

# {model type: {name of a section in released files: its present name}}
OLDER_SECTIONS: Mapping[str, Mapping[str, str]] = {
    "molmo2": {"vit_config": "vision_config"},
    "nemotron_h_omni": {"llm_config": "text_config", "sound_config": "audio_config"},
    "unlimited_ocr": {"language_config": "text_config"},
}

# {model type: how the reference reads it}. All parts are counted if the type is also in ARCHITECTURES.
COMPOSITES = {
    "aria": Composite(
        "aria_text", ignores_model_type=True, default_encoder="idefics3_vision", encoders=("idefics3_vision",)
    ),
    "audioflamingo3": Composite("qwen2", tie_rule="never", other_sections=AUDIO),
    "blip-2": Composite("opt", tie_rule="text", supported_types=BLIP_LANGUAGES),
    "aya_vision": Composite(
        "cohere2",
        default_tie=True,
        default_encoder="siglip_vision_model",
        default_encoder_section=SIGLIP | {"num_attention_heads": 14},
    ),
    "cohere2_vision": Composite(
        "cohere2", default_tie=True, default_encoder="siglip_vision_model", default_encoder_section=COHERE_SIGLIP
    ),
    "cohere_compass": Composite("cohere_compass_text", ignores_model_type=True),
    "cosmos3_edge": Composite("cosmos3_edge_text", tie_rule="never", ignores_model_type=True),
    "cosmos3_omni": Composite("qwen3_vl_text", supported_types=("qwen3_vl_text",)),
    "deepseek_vl": Composite("llama", default_tie=True, default_encoder="siglip_vision_model"),
    "deepseek_vl_hybrid": Composite(
        "llama",
        default_tie=True,
        other_sections=("vision_config", "high_res_vision_config"),
        default_encoder="siglip_vision_model",
    ),
    "dots3_note": Composite(
        "dots3_note_text", ignores_model_type=True, is_flat=True, other_sections=("vision_config", *AUDIO)
    ),
    "ernie4_5_vl_moe": Composite("ernie4_5_vl_moe_text", default_tie=True, ignores_model_type=True),
    "exaone4_5": Composite("exaone4", old_type="exaone4_5_text", needs_model_type=True),
    "fast_vlm": Composite("qwen2", tie_rule="either", default_section=FAST_VLM),
    "florence2": Composite("bart", tie_rule="text", supported_types=("bart",)),
    "fun_asr_nano": Composite(
        "qwen3",
        default_tie=True,
        default_section=SMALL_QWEN_3 | {"tie_word_embeddings": True},
        other_sections=("audio_config", "adaptor_config"),
    ),
    "glm46v": Composite("glm4v_text"),
    "glm4v": Composite("glm4v_text", tie_rule="either", ignores_model_type=True),
    "glm4v_moe": Composite("glm4v_moe_text", tie_rule="either", ignores_model_type=True),
    "glm5_next": Composite("glm5_next_text", ignores_model_type=True, is_flat=True),
    "glm_ocr": Composite("glm_ocr_text", tie_rule="either", ignores_model_type=True),
    "glmasr": Composite(
        "llama", default_tie=True, default_section=GLM_ASR, fills_missing_keys=True, other_sections=AUDIO
    ),
    "glmga": Composite("glm4v_text"),
    "got_ocr2": Composite("qwen2", default_tie=True, default_section=GOT | {"tie_word_embeddings": True}),
    "granite4_vision": Composite(
        "granite4_vision_text",
        ignores_model_type=True,
        default_encoder="clip_vision_model",
        other_sections=("vision_config", "qformer_config"),
    ),
    "granite_docling": Composite("granite_docling_text", default_tie=True, ignores_model_type=True),
    "granite_speech": Composite("granite", default_tie=True, other_sections=("encoder_config", "projector_config")),
    "granite_speech_plus": Composite(
        "granite", default_tie=True, other_sections=("encoder_config", "projector_config")
    ),
    "h2ovl_chat": Composite("llama", section="llm_config", tie_rule="never", classes=H2OVL_LANGUAGES),
    "hunyuan_vl": Composite(
        "hunyuan_vl_text", tie_rule="either", default_tie=True, ignores_model_type=True, is_flat=True
    ),
    "hyperclovax_vision_v2": Composite(
        "hyperclovax",
        default_tie=True,
        default_encoder="qwen2_5_vl_vision",
        encoders=("qwen2_5_vl_vision", "qwen2_5_vl"),
        supported_types=SCALED_LOGITS,
    ),
    "idefics2": Composite("mistral", other_sections=("vision_config", "perceiver_config")),
    "idefics3": Composite("llama"),
    "instructblip": Composite("opt", tie_rule="text", supported_types=BLIP_LANGUAGES),
    "instructblipvideo": Composite("opt", tie_rule="text", supported_types=BLIP_LANGUAGES),
    "internvl": Composite("qwen2", default_tie=True),
    "internvl_chat": Composite("qwen2", section="llm_config", tie_rule="never", classes=INTERNVL_LANGUAGES),
    "janus": Composite("llama", default_tie=True, other_sections=("vision_config", "vq_config")),
    "kimi_k25": Composite("deepseek_v3", default_tie=True, old_type="kimi_k2"),
    "kimi_vl": Composite("deepseek_v3", tie_rule="text", ignores_model_type=True),
    "lfm2_vl": Composite("lfm2", default_tie=True, has_old_tie_key=True, default_encoder="siglip2_vision_model"),
    "lfm3_vl": Composite("lfm3", default_tie=True),
    "lighton_ocr": Composite(
        "qwen3", default_tie=True, default_section=LIGHTON, default_encoder="pixtral", default_encoder_section=PIXTRAL
    ),
    "llava": Composite("llama", tie_rule="either", default_encoder="clip_vision_model", default_encoder_section=CLIP),
    "llava_next": Composite("llama", default_encoder="clip_vision_model", default_encoder_section=CLIP),
    "llava_next_video": Composite(
        "llama", tie_rule="either", default_encoder="clip_vision_model", default_encoder_section=CLIP
    ),
    "llava_onevision": Composite(
        "qwen2", tie_rule="either", default_encoder="siglip_vision_model", default_encoder_section=SIGLIP
    ),
    "minicpm_ocr": Composite("qwen3_5_text", default_tie=True),
    "minicpmv": Composite("qwen2", is_flat=True, versions=MINICPM_V),
    "minicpmv4_6": Composite("qwen3_5_text"),
    "minicpmv4_7": Composite("qwen3_5_text"),
    "mistral3": Composite(
        "mistral",
        default_tie=True,
        default_section=MISTRAL_3,
        default_encoder="pixtral",
        default_encoder_section=PIXTRAL,
    ),
    "mistral_large4": Composite(
        "mistral_large4_text",
        ignores_model_type=True,
        default_encoder="pixtral",
        default_encoder_section=LARGE_PIXTRAL,
    ),
    "modernvbert": Composite("modernbert", supported_types=("modernbert",)),
    "moss_transcribe_diarize": Composite("qwen3", default_tie=True, default_section=SMALL_QWEN_3, other_sections=AUDIO),
    "musicflamingo": Composite("qwen2", tie_rule="never", other_sections=AUDIO),
    "nemotron_h_omni": Composite(
        "nemotron_h", tie_rule="text", other_sections=("vision_config", "audio_config"), supported_types=("nemotron_h",)
    ),
    "ovis2": Composite("qwen2", tie_rule="outside", default_tie=True),
    "paddleocr_vl": Composite(
        "paddleocr_vl_text", tie_rule="either", default_tie=True, ignores_model_type=True, is_flat=True
    ),
    "paligemma": Composite(
        "gemma",
        default_tie=True,
        default_section=PALIGEMMA,
        supported_types=("gemma", "gemma2", "gemma3_text"),
        default_encoder="siglip_vision_model",
        default_encoder_section=PALIGEMMA_VISION,
    ),
    "perception_lm": Composite("llama", tie_rule="text unless top"),
    "pp_chart2table": Composite("qwen2", default_tie=True, default_section=GOT | {"tie_word_embeddings": True}),
    "qianfan_ocr": Composite("qwen3"),
    "qwen2_5_omni_thinker": Composite("qwen2_5_omni_text", ignores_model_type=True),
    "qwen2_5_vl": Composite("qwen2_5_vl_text", tie_rule="either", ignores_model_type=True, is_flat=True),
    "qwen2_audio": Composite("qwen2", tie_rule="never", other_sections=AUDIO),
    "qwen2_vl": Composite("qwen2_vl_text", tie_rule="either", ignores_model_type=True, is_flat=True),
    "qwen3_5": Composite("qwen3_5_text", ignores_model_type=True),
    "qwen3_5_moe": Composite("qwen3_5_moe_text", ignores_model_type=True),
    "qwen4_exp": Composite("qwen4_exp_text", ignores_model_type=True),
    "qwen3_asr": Composite(
        "qwen3", default_tie=True, default_section=ASR_QWEN_3 | {"tie_word_embeddings": True}, other_sections=AUDIO
    ),
    "qwen3_omni_moe_thinker": Composite(
        "qwen3_omni_moe_text", ignores_model_type=True, other_sections=("vision_config", "audio_config")
    ),
    "qwen3_vl": Composite("qwen3_vl_text", ignores_model_type=True),
    "qwen3_vl_moe": Composite("qwen3_vl_moe_text", ignores_model_type=True),
    "skywork_chat": Composite("qwen2", section="llm_config", tie_rule="never", classes={"Qwen2ForCausalLM": "qwen2"}),
    "smolvlm": Composite("llama"),
    "step3_vl": Composite("step3_text", tie_rule="never", ignores_model_type=True),
    "ultravbert": Composite("ultrabert", supported_types=("ultrabert",)),
    "vibevoice_asr": Composite(
        "qwen2",
        tie_rule="never",
        other_sections=("semantic_tokenizer_encoder_config", "acoustic_tokenizer_encoder_config"),
    ),
    "video_llama_3": Composite("qwen2", tie_rule="either"),
    "video_llava": Composite("llama", default_encoder="clip_vision_model", default_encoder_section=SMALL_CLIP),
    "vipllava": Composite("llama", default_encoder="clip_vision_model", default_encoder_section=CLIP),
    "voxtral": Composite(
        "llama", tie_rule="never", default_section=VOXTRAL, fills_missing_keys=True, other_sections=AUDIO
    ),
}


def get_language_config(document: Mapping[str, Any]) -> dict[str, Any]:
    """The language model of a multimodal config.json as a config.json of its own.

    Raises: ParamcountError if the section is not a mapping, or if its model type is not supported.
    """
    composite = COMPOSITES[str(document["model_type"])]
    section = get_language_section(document, composite)
    config = {**section, "model_type": find_language_type(section, composite), "architectures": None}
    is_tied = document.get(TIE_KEY, None if composite.tie_rule == "text unless top" else composite.default_tie)
    if composite.has_old_tie_key:
        is_tied = document.get(OLD_TIE_KEY, is_tied)
    if is_tied is None and composite.tie_rule == "text unless top":
        return config
    if type(is_tied) is not bool and composite.tie_rule != "never":
        raise ParamcountError(f"= {describe_value(is_tied)}", where=TIE_KEY, expected="true or false")
    match composite.tie_rule:
        case "top" | "text unless top":
            config[TIE_KEY] = is_tied
        case "never":
            config[TIE_KEY] = False
        case "outside":
            config[TIE_KEY] = is_tied
            if not is_tied:
                check_head_sizes(document, section, composite.section)
        case "either" if is_tied is True:
            config[TIE_KEY] = True
    if OLD_TIE_KEY in config and (composite.tie_rule not in ("text", "either") or is_tied is True):
        config[OLD_TIE_KEY] = config[TIE_KEY]
    return config


def get_language_section(document: Mapping[str, Any], composite: Composite) -> Mapping[str, Any]:
    """The section of the language model, with the reference's defaults if it is missing."""
    section = document.get(composite.section)
    if section is None and composite.is_flat:
        others = (*composite.other_sections, TIE_KEY)  # which stays a key of the whole
        return {key: value for key, value in document.items() if key not in others}
    if section is None:
        return composite.default_section
    if not isinstance(section, Mapping):
        raise ParamcountError(f"= {describe_value(section)}", where=composite.section, expected="a JSON object")
    if composite.needs_model_type and "model_type" not in section:
        where = f"{composite.section}.model_type"
        raise ParamcountError("is missing", where=where, expected=composite.default_type)
    return {**composite.default_section, **section} if composite.fills_missing_keys else section


def find_language_type(section: Mapping[str, Any], composite: Composite) -> str:
    """The model type of the language model.

    Raises: ParamcountError if it is not supported.
    """
    model_type = section.get("model_type", composite.default_type)
    if composite.classes:
        model_type = find_type_of_class(section, composite)
    elif composite.versions:
        model_type = find_type_of_version(section, composite)
    elif composite.ignores_model_type:
        model_type = composite.default_type
    model_type = check_model_type(model_type, composite.section)
    is_old_type = bool(composite.old_type) and model_type == composite.old_type
    if is_old_type or model_type == composite.default_type:
        return composite.default_type
    named_types = (*composite.classes.values(), *composite.versions.values())
    supported = composite.supported_types or named_types or LANGUAGE_MODEL_TYPES
    if model_type not in supported:
        raise ParamcountError(
            f"= {describe_value(model_type)} is not supported",
            where=f"{composite.section}.model_type",
            expected=list_names(sorted(supported), model_type),
            nearest=find_nearest(model_type, supported),
        )
    return model_type


def rename_sections(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config.json with its sections under their present names too."""
    for old, new in OLDER_SECTIONS.get(str(document.get("model_type")), {}).items():
        if document.get(new) is None and document.get(old) is not None:
            document = {**document, new: document[old]}
    return document


def rename_old_type(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config.json with the present name of the language model's type."""
    composite = COMPOSITES.get(str(document["model_type"]))
    section = document.get(composite.section) if composite and composite.old_type else None
    if composite and isinstance(section, Mapping) and section.get("model_type") == composite.old_type:
        return {**document, composite.section: {**section, "model_type": composite.default_type}}
    return document


def check_head_sizes(document: Mapping[str, Any], section: Mapping[str, Any], name: str) -> None:
    """Raise an error if an untied LM head has other sizes at the top level than the token embedding in the section."""
    if all(section.get(key) == document.get(key, default) for key, default in OVIS_HEAD.items()):
        return
    raise ParamcountError(
        "= false, but the LM head and the token embedding have different sizes",
        where=TIE_KEY,
        expected=f"true, or the same {join_words(OVIS_HEAD, 'and')} at the top level and in {name}",
    )


def find_type_of_class(section: Mapping[str, Any], composite: Composite) -> str:
    """The model type of the class that a section's `architectures` names first."""
    classes = section.get("architectures")
    cls = classes[0] if isinstance(classes, (list, tuple)) and classes else None
    if isinstance(cls, str) and cls in composite.classes:
        return composite.classes[cls]
    raise ParamcountError(
        "is missing" if cls is None else f"= {describe_value(cls)} is not supported",
        where=f"{composite.section}.architectures.0",
        expected=list_names(composite.classes, cls or ""),
        choices=composite.classes,
        nearest=find_nearest(cls, composite.classes),
    )


def find_type_of_version(section: Mapping[str, Any], composite: Composite) -> str:
    """The model type for the `version` of a section."""
    version = section.get("version")
    if str(version) in composite.versions:
        return composite.versions[str(version)]
    problem = "is missing" if version is None else f"= {describe_value(version)} is not supported"
    raise ParamcountError(problem, where="version", choices=composite.versions)


def get_encoder_type(document: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The model type of the vision encoder that a multimodal config.json names, and its section."""
    composite = COMPOSITES[str(document["model_type"])]
    name = composite.other_sections[0]
    section = document.get(name)
    if section is None:
        section = composite.default_encoder_section
    elif not isinstance(section, Mapping):
        raise ParamcountError(f"= {describe_value(section)}", where=name, expected="a JSON object")
    return check_model_type(section.get("model_type", composite.default_encoder), name), section


def check_model_type(model_type: object, section: str) -> str:
    """The model type of a section. Raises an error if it is not a string."""
    if not isinstance(model_type, str):
        raise ParamcountError(f"= {describe_value(model_type)}", where=f"{section}.model_type", expected="a string")
    return model_type


def get_encoder_config(document: Mapping[str, Any]) -> tuple[type[Sizes], Mapping[str, Any]]:
    """The class of the vision encoder that a multimodal config.json names, and its section."""
    name, section = get_encoder_type(document)
    if name not in SECTION_ENCODERS:
        raise ParamcountError(
            f"= {describe_value(name)} is not supported",
            where="vision_config.model_type",
            expected=list_names(SECTION_ENCODERS, name),
            nearest=find_nearest(name, SECTION_ENCODERS),
        )
    return load_encoder(name), section
