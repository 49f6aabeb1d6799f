"""LLaVA, ViP-LLaVA, PaliGemma, Mistral 3 and LightOnOCR: a vision encoder, a projector and a language model.

config.json names the encoder and the language model.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.qwen3 import SMALL_QWEN_3
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import (
    Data,
    activate,
    layer_norm,
    linear,
    merge_squares,
    other_tokens,
    reshape,
    rms_norm,
)
from paramcount.parts.clip import CLIP
from paramcount.parts.composite import FORMER_PREFIXES, Multimodal
from paramcount.parts.pixtral import PIXTRAL
from paramcount.parts.vision import places_of_patches
from paramcount.sizes import ConfigJson, FieldValues, Flag, Positive, Tower, derived, hf, setting
from paramcount.sizes.conditions import encoder_has_image_size
from paramcount.sizes.sections import Sections

VIEWS = ("vision_feature_layer",)  # the keys of the layers that are looked at; the first that is there counts


MISTRAL_3 = {
    "head_dim": 128,
    "hidden_size": 5120,
    "intermediate_size": 32768,
    "num_attention_heads": 32,
    "num_hidden_layers": 40,
    "num_key_value_heads": 8,
    "sliding_window": None,
    "vocab_size": 131072,
}
LIGHTON = SMALL_QWEN_3 | {"head_dim": 128, "sliding_window": None, "vocab_size": 151936}
PALIGEMMA = {
    "hidden_size": 2048,
    "num_hidden_layers": 18,
    "intermediate_size": 16384,
    "num_attention_heads": 8,
    "num_key_value_heads": 1,
    "vocab_size": 257152,
}
PALIGEMMA_VISION = {
    "hidden_size": 1152,
    "intermediate_size": 4096,
    "patch_size": 14,
    "image_size": 224,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "vision_use_head": False,
}


def n_views(absent: int | tuple[int, ...], keys: tuple[str, ...] = VIEWS) -> Any:
    """How many layers of the tower are looked at: one, or as many as a list names."""

    def number(js: ConfigJson, c: FieldValues) -> int:
        where = next((key for key in keys if key in js), keys[0])
        named = js.get(where, absent)
        several = [named] if type(named) is int else named
        if not isinstance(several, (list, tuple)) or not all(type(i) is int for i in several):
            raise ParamcountError(
                f"= {describe_value(named)}", where=where, expected="an integer or a list of integers"
            )
        return len(several)

    return derived(number)


def viewed_layers(absent: Any, keys: tuple[str, ...] = VIEWS) -> Any:
    """The layers of the encoder that are looked at, by the number of layers before their states."""

    def read(config: Mapping[str, Any], c: Any) -> tuple[int, ...]:
        named = next((config[key] for key in keys if key in config), absent)
        return (named,) if type(named) is int else tuple(named)

    return setting(default=read)


class Llava(Multimodal):
    """Source: arXiv:2304.08485, section 4.1; two matrices in the projector arXiv:2310.03744, section 3.2."""

    reference = "LlavaForConditionalGeneration"
    gguf = "llama qwen2 mistral3 gemma"
    sections = Sections("llama", tie_rule="either", default_encoder="clip_vision_model", default_encoder_section=CLIP)
    reference_names = FORMER_PREFIXES

    vision: Tower
    n_views: Positive = n_views(-2)
    projector_bias: Flag = hf("multimodal_projector_bias")

    image_token = setting("image_token_index", "image_token_id", default=32000)
    views = viewed_layers(-2)
    selection: ClassVar = setting("vision_feature_select_strategy", default="default")
    activation = setting("projector_hidden_act", default="gelu")

    def encode(c: Any, pixels: Data) -> Data:
        encoded: Data = c.vision.forward(pixels, (c.views, c.n_views))
        return encoded

    def project(c: Any, x: Data, *places: Data) -> Data:
        out: Data = c.widen(x if c.selection == "full" else other_tokens(x))
        return out

    def widen(c: Any, x: Data) -> Data:
        h = linear(x, "linear_1", "projector", c.language.d_model, bias=c.projector_bias)
        return linear(activate(h, c.activation), "linear_2", "projector", c.language.d_model, bias=c.projector_bias)


class VipLlava(Llava):
    """Several layers are looked at, and normalized. Source: arXiv:2312.00784, section 3.1."""

    reference = "VipLlavaForConditionalGeneration"
    model_types = ("vipllava",)
    sections = Sections("llama", default_encoder="clip_vision_model", default_encoder_section=CLIP)

    n_views: Positive = n_views((-2, -5, -8, -11, 6), ("vision_feature_layers", *VIEWS))
    projector_bias: Flag = derived(lambda js, c: True)

    views = viewed_layers((-2, -5, -8, -11, 6), ("vision_feature_layers", *VIEWS))
    selection = "default"
    norm_eps = setting("projector_layernorm_eps", default=1e-5)

    def widen(c: Any, x: Data) -> Data:
        out: Data = super().widen(layer_norm(x, "projector_layernorm", c.norm_eps))
        return out


class PaliGemma(Multimodal):
    """Source: arXiv:2407.07726, section 3.1. The tokens of a prompt attend to all of it (PaliGemmaConfig sets
    use_bidirectional_attention); over Gemma 2, to those before them, as in the reference without token_type_ids.
    """

    reference = "PaliGemmaForConditionalGeneration"
    model_types = ("paligemma",)
    sections = Sections(
        "gemma",
        default_tie=True,
        default_section=PALIGEMMA,
        supported_types=("gemma", "gemma2", "gemma3_text"),
        default_encoder="siglip_vision_model",
        default_encoder_section=PALIGEMMA_VISION,
    )
    reference_names = FORMER_PREFIXES
    conditions = (encoder_has_image_size,)
    added_keys = {"language": {"use_bidirectional_attention": True}}

    vision: Tower
    d_projected: Positive = hf("projection_dim")

    image_token = setting("image_token_index", "image_token_id", default=256000)

    def project(c: Any, x: Data, *places: Data) -> Data:
        return linear(x, "linear", "projector", c.d_projected, bias=True)


class Mistral3(Llava):
    """Squares of merge_size patches a side become one. Source: modeling_mistral3.py of the reference."""

    reference = "Mistral3ForConditionalGeneration"
    model_types = ("mistral3",)
    gguf = "mistral3 mistral4 llama"
    sections = Sections(
        "mistral",
        default_tie=True,
        default_section=MISTRAL_3,
        default_encoder="pixtral",
        default_encoder_section=PIXTRAL,
    )
    absent_sections = {"language": {"rms_norm_eps": 1e-5, "rope_theta": 1e9, "sliding_window": None}}
    places = places_of_patches

    n_views: Positive = n_views(-1)
    merge_size: Positive = hf("spatial_merge_size")

    image_token = setting("image_token_index", "image_token_id", default=10)
    views = viewed_layers(-1)
    selection = "full"

    def encode(c: Any, pixels: Data) -> Data:
        encoded: Data = c.vision.forward(pixels, (c.views, 1))
        return encoded

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = rms_norm(x, "norm", c.language.norm_eps)
        x = merge_squares(x, c.merge_size * c.merge_size, *places, channels_first=True)
        x = linear(x, "patch_merger.merging_layer", "projector", c.vision.d_model)
        out: Data = c.widen(reshape(x, c.n_views * c.vision.d_model))  # the reference runs with one view alone
        return out


class LightOnOcr(Mistral3):
    """Source: arXiv:2601.14251, section 2; modeling_lighton_ocr.py of the reference."""

    reference = "LightOnOcrForConditionalGeneration"
    model_types = ("lighton_ocr",)
    sections = Sections(
        "qwen3", default_tie=True, default_section=LIGHTON, default_encoder="pixtral", default_encoder_section=PIXTRAL
    )
    reference_names = {}
    absent_sections = {"language": {"rope_theta": 1e6}}
    encoder_prefix = "model.vision_encoder."
    projector_prefix = "model.vision_projection."
    moved = ("model.", "model.language_model.")

    n_views: Positive = derived(lambda js, c: 1)
    projector_bias: Flag = derived(lambda js, c: False)

    image_token = setting("image_token_id", default=151655)
    views = setting(default=(-1,))
    activation = setting(default="gelu")
