"""Models of several parts: whose config.json holds a language model's in a section, and how the reference reads that section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, shown

SECTION = "text_config"


class Composite(NamedTuple):
    """How the reference reads the language model of a composite config."""

    text: str  # its model type, where the section names none
    tie: str = "top"  # whether head and table are one: "top" says it outside the section, "text" inside, "either", or "never"
    tied: bool = False  # `tie` where nothing says it outside
    fixed: bool = False  # the section's own model_type counts for nothing
    flat: bool = False  # without a section, the language model's keys stand outside
    missing: Mapping[str, Any] = {}  # the section where there is none
    beside: tuple[str, ...] = ("vision_config",)  # sections that are no language model


AUDIO = ("audio_config",)
MISTRAL_3 = {
    "head_dim": 128, "hidden_size": 5120, "intermediate_size": 32768, "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8,
    "sliding_window": None, "vocab_size": 131072,
}  # fmt: skip
GOT = {"vocab_size": 151860, "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16}
SMALL_QWEN_3 = {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8}
ASR_QWEN_3 = SMALL_QWEN_3 | {"hidden_size": 2048, "intermediate_size": 6144, "head_dim": 128}
LIGHTON = SMALL_QWEN_3 | {"head_dim": 128, "sliding_window": None, "vocab_size": 151936}
GLM_ASR = {
    "vocab_size": 59264, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 4,
}  # fmt: skip
VOXTRAL = {"vocab_size": 131072, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 30, "num_key_value_heads": 8, "head_dim": 128}
PALIGEMMA = {
    "hidden_size": 2048, "num_hidden_layers": 18, "intermediate_size": 16384, "num_attention_heads": 8, "num_key_value_heads": 1, "vocab_size": 257152,
}  # fmt: skip

# {model type: how the reference reads it}. Where ARCHITECTURES has the type too, all of its parts are counted.
COMPOSITES = {
    "aria": Composite("aria_text", fixed=True),
    "cohere2_vision": Composite("cohere2", tied=True),
    "deepseek_vl": Composite("llama", tied=True),
    "deepseek_vl_hybrid": Composite("llama", tied=True, beside=("vision_config", "high_res_vision_config")),
    "dots3_note": Composite("dots3_note_text", tie="text", fixed=True, flat=True, beside=("vision_config", *AUDIO)),
    "exaone4_5": Composite("exaone4"),
    "glm46v": Composite("glm4v_text"),
    "glm4v": Composite("glm4v_text", tie="either", fixed=True),
    "glm4v_moe": Composite("glm4v_moe_text", tie="either", fixed=True),
    "glmasr": Composite("llama", tied=True, missing=GLM_ASR, beside=AUDIO),
    "got_ocr2": Composite("qwen2", tied=True, missing=GOT | {"tie_word_embeddings": True}),
    "granite_speech": Composite("granite", tied=True, beside=("encoder_config", "projector_config")),
    "granite_speech_plus": Composite("granite", tied=True, beside=("encoder_config", "projector_config")),
    "hyperclovax_vision_v2": Composite("hyperclovax", tied=True),
    "idefics2": Composite("mistral", beside=("vision_config", "perceiver_config")),
    "idefics3": Composite("llama"),
    "internvl": Composite("qwen2", tied=True),
    "kimi_k25": Composite("deepseek_v3", tied=True),
    "lfm2_vl": Composite("lfm2", tied=True),
    "lighton_ocr": Composite("qwen3", tied=True, missing=LIGHTON),
    "llava": Composite("llama", tie="either"),
    "llava_next": Composite("llama"),
    "llava_next_video": Composite("llama", tie="either"),
    "llava_onevision": Composite("qwen2", tie="either"),
    "minimax_m3_vl": Composite("minimax_m3_vl_text", tie="either", fixed=True),
    "mistral3": Composite("mistral", tied=True, missing=MISTRAL_3),
    "moss_transcribe_diarize": Composite("qwen3", tied=True, missing=SMALL_QWEN_3, beside=AUDIO),
    "ovis2": Composite("qwen2", tied=True),
    "paligemma": Composite("gemma", tied=True, missing=PALIGEMMA),
    "pp_chart2table": Composite("qwen2", tied=True, missing=GOT | {"tie_word_embeddings": True}),
    "qianfan_ocr": Composite("qwen3"),
    "qwen2_5_vl": Composite("qwen2_5_vl_text", tie="either", fixed=True, flat=True),
    "qwen2_audio": Composite("qwen2", tie="never", beside=AUDIO),
    "qwen2_vl": Composite("qwen2_vl_text", tie="either", fixed=True, flat=True),
    "qwen3_5": Composite("qwen3_5_text", fixed=True),
    "qwen3_5_moe": Composite("qwen3_5_moe_text", fixed=True),
    "qwen3_asr": Composite("qwen3", tied=True, missing=ASR_QWEN_3 | {"tie_word_embeddings": True}, beside=AUDIO),
    "qwen3_vl": Composite("qwen3_vl_text", fixed=True),
    "qwen3_vl_moe": Composite("qwen3_vl_moe_text", fixed=True),
    "smolvlm": Composite("llama"),
    "vibevoice_asr": Composite("qwen2", tie="never", beside=("semantic_tokenizer_encoder_config", "acoustic_tokenizer_encoder_config")),
    "video_llama_3": Composite("qwen2", tie="either"),
    "video_llava": Composite("llama"),
    "vipllava": Composite("llama"),
    "voxtral": Composite("llama", tie="never", missing=VOXTRAL, beside=AUDIO),
}


def language_config(document: Mapping[str, Any]) -> dict[str, Any]:
    """The language model of a composite config.json as a config.json of its own.

    Raises: ParamcountError where the section is no mapping.
    """
    composite = COMPOSITES[str(document["model_type"])]
    section = document.get(SECTION)
    if section is None:
        section = {key: value for key, value in document.items() if key not in composite.beside} if composite.flat else composite.missing
    elif not isinstance(section, Mapping):
        raise ParamcountError(f"= {shown(section)}", where=SECTION, accepted="a mapping")
    elif composite is COMPOSITES["voxtral"]:
        section = {**composite.missing, **section}
    model_type = composite.text if composite.fixed else section.get("model_type", composite.text)
    found = {**section, "model_type": model_type, "architectures": None}
    outside = document.get("tie_word_embeddings", composite.tied)
    match composite.tie:
        case "top":
            found["tie_word_embeddings"] = outside
        case "never":
            found["tie_word_embeddings"] = False
        case "either" if outside is True:
            found["tie_word_embeddings"] = True
    return found
