"""The reference's classes: those that an architecture declares, and the model type of a class."""

from functools import cache

from paramcount.architectures import ARCHITECTURES, architecture, split_name
from paramcount.sizes import Sizes

REFERENCE_ENDINGS = (
    "ForCausalLM", "ForConditionalGeneration", "WithLMHeadModel", "LMHeadModel", "ForMaskedLM", "Decoder", "MTModel",
)  # fmt: skip

# {class: its model type in the reference} of classes that declarations of several model types name, or one of a part
# alone.
SHARED = {
    "Cosmos3EdgeForConditionalGeneration": "cosmos3_edge",
    "Emu3ForCausalLM": "emu3_text_model",
    "Ernie4_5_VLMoeForConditionalGeneration": "ernie4_5_vl_moe",
    "GPT2LMHeadModel": "gpt2",
    "Gemma3ForCausalLM": "gemma3_text",
    "Gemma3nForCausalLM": "gemma3n_text",
    "Gemma4ForCausalLM": "gemma4_text",
    "Gemma4UnifiedForCausalLM": "gemma4_unified_text",
    "Glm46VForConditionalGeneration": "glm46v",
    "Glm4vForConditionalGeneration": "glm4v",
    "Glm4vMoeForConditionalGeneration": "glm4v_moe",
    "Glm5NextForConditionalGeneration": "glm5_next",
    "GlmOcrForConditionalGeneration": "glm_ocr",
    "GotOcr2ForConditionalGeneration": "got_ocr2",
    "Granite4VisionForConditionalGeneration": "granite4_vision",
    "GraniteDoclingForConditionalGeneration": "granite_docling",
    "HunYuanVLForConditionalGeneration": "hunyuan_vl",
    "Llama4ForCausalLM": "llama4_text",
    "LlamaForCausalLM": "llama",
    "MistralLarge4ForConditionalGeneration": "mistral_large4",
    "MllamaForCausalLM": "mllama_text_model",
    "MusicgenForCausalLM": "musicgen_decoder",
    "MusicgenMelodyForCausalLM": "musicgen_melody_decoder",
    "PaddleOCRVLForConditionalGeneration": "paddleocr_vl",
    "Qwen2VLForConditionalGeneration": "qwen2_vl",
    "Qwen2_5OmniThinkerForConditionalGeneration": "qwen2_5_omni_thinker",
    "Qwen2_5_VLForConditionalGeneration": "qwen2_5_vl",
    "Qwen3OmniMoeThinkerForConditionalGeneration": "qwen3_omni_moe_thinker",
    "Qwen3VLForConditionalGeneration": "qwen3_vl",
    "Qwen3VLMoeForConditionalGeneration": "qwen3_vl_moe",
    "Qwen3_5ForCausalLM": "qwen3_5_text",
    "Qwen3_5MoeForCausalLM": "qwen3_5_moe_text",
    "Qwen4ExpForCausalLM": "qwen4_exp_text",
    "RWForCausalLM": "RefinedWebModel",  # which refuses the keys of RefinedWeb
}


def strip_class_ending(name: str) -> str:
    """A class name without its ending: Qwen2 for Qwen2ForCausalLM."""
    return next((name.removesuffix(ending) for ending in REFERENCE_ENDINGS if name.endswith(ending)), name)


def get_reference_class(architecture: type[Sizes]) -> str:
    """The class whose parameters an architecture declares."""
    return architecture.reference.partition(" ")[0]


def get_base_class(architecture: type[Sizes]) -> str:
    """The reference class without a head; empty if there is none."""
    if architecture.base_model is not None:
        return architecture.base_model
    return f"{strip_class_ending(get_reference_class(architecture))}Model"


@cache
def list_equivalent_classes(architecture: type[Sizes]) -> tuple[str, ...]:
    """The classes whose parameters an architecture declares, with the LM head and without."""
    names = (get_reference_class(architecture), *architecture.equivalent_classes, get_base_class(architecture))
    return tuple(name for name in names if name)


def has_lm_head(architecture: type[Sizes], cls: str) -> bool:
    """Whether a class has an LM head: ChatGLMModel, which is declared as equivalent, has one in spite of its name."""
    with_head = (get_reference_class(architecture), *architecture.equivalent_classes)
    return cls in with_head or cls != get_base_class(architecture)


@cache
def model_types() -> dict[str, str]:
    """{class: its model type} for every class that a declaration names.

    Imports all declarations.

    A class of a library comes before the same name in a publisher's own code. A class of several model types that
    SHARED does not resolve is left out.
    """
    library: dict[str, set[str]] = {}
    remote: dict[str, set[str]] = {}
    for name in ARCHITECTURES:
        declared = architecture(name)
        own, _, publisher = declared.reference.partition(" of ")
        found = remote if publisher else library
        for cls in (own, *declared.equivalent_classes):
            found.setdefault(cls, set()).add(split_name(name)[0])
    known = {cls: next(iter(types)) for cls, types in (remote | library).items() if len(types) == 1}
    return known | SHARED


@cache
def stems() -> dict[str, str]:
    """{class without its ending: its model type} for the classes of `model_types`."""
    return {strip_class_ending(name): model_type for name, model_type in model_types().items()}
