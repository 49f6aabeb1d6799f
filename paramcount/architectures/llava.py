"""LLaVA, ViP-LLaVA, PaliGemma, Mistral 3 and LightOnOCR: a vision encoder, a projector and a language model.

config.json names the encoder and the language model.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.qwen3 import SMALL_QWEN_3
from paramcount.declare import Data, ops, parts, sizes

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


@sizes.options_first
def n_views(
    js: sizes.ConfigJson, c: sizes.FieldValues, absent: int | tuple[int, ...], keys: tuple[str, ...] = VIEWS
) -> int:
    """How many layers of the tower are looked at: one, or as many as a list names."""
    where = next((key for key in keys if key in js), keys[0])
    named = js.get(where, absent)
    several = [named] if type(named) is int else named
    if not isinstance(several, (list, tuple)) or not all(type(i) is int for i in several):
        raise sizes.make_value_error(named, where, "an integer or a list of integers")
    return len(several)


@sizes.options_first
def viewed_layers(config: Mapping[str, Any], c: Any, absent: Any, keys: tuple[str, ...] = VIEWS) -> tuple[int, ...]:
    """The layers of the encoder that are looked at, by the number of layers before their states."""
    named = next((config[key] for key in keys if key in config), absent)
    return (named,) if type(named) is int else tuple(named)


class Llava(parts.FormerMultimodal):
    """Source: arXiv:2304.08485, section 4.1; two matrices in the projector arXiv:2310.03744, section 3.2."""

    reference = "LlavaForConditionalGeneration"
    gguf = "llama qwen2 mistral3 gemma"
    sections = sizes.Sections(
        "llama", tie_rule="either", default_encoder="clip_vision_model", default_encoder_section=parts.CLIP
    )

    vision: sizes.Tower
    n_views: sizes.Positive = sizes.derived(n_views(-2))
    projector_bias: sizes.Flag = sizes.hf("multimodal_projector_bias")

    views = sizes.setting(default=viewed_layers(-2))
    selection: ClassVar = sizes.setting("vision_feature_select_strategy")
    activation = sizes.setting("projector_hidden_act")

    def encode(c: Any, pixels: Data) -> Data:
        return c.vision.forward(pixels, (c.views, c.n_views))

    def project(c: Any, x: Data, *places: Data) -> Data:
        return c.widen(x if c.selection == "full" else ops.other_tokens(x))


class VipLlava(Llava):
    """Several layers are looked at, and normalized. Source: arXiv:2312.00784, section 3.1."""

    reference = "VipLlavaForConditionalGeneration"
    model_types = ("vipllava",)
    sections = sizes.Sections("llama", default_encoder="clip_vision_model", default_encoder_section=parts.CLIP)

    n_views: sizes.Positive = sizes.derived(n_views((-2, -5, -8, -11, 6), ("vision_feature_layers", *VIEWS)))
    projector_bias: sizes.Flag = sizes.derived(lambda js, c: True)

    views = sizes.setting(default=viewed_layers((-2, -5, -8, -11, 6), ("vision_feature_layers", *VIEWS)))
    selection = "default"
    norm_eps = sizes.setting("projector_layernorm_eps")

    def widen(c: Any, x: Data, d_hidden: ops.Size | None = None) -> Data:
        return super().widen(ops.layer_norm(x, "projector_layernorm", c.norm_eps))


class PaliGemma(parts.FormerMultimodal):
    """Source: arXiv:2407.07726, section 3.1. The tokens of a prompt attend to all of it (PaliGemmaConfig sets
    use_bidirectional_attention); over Gemma 2, to those before them, as in the reference without token_type_ids.
    """

    reference = "PaliGemmaForConditionalGeneration"
    model_types = ("paligemma",)
    sections = sizes.Sections(
        "gemma",
        default_tie=True,
        default_section=PALIGEMMA,
        supported_types=("gemma", "gemma2", "gemma3_text"),
        default_encoder="siglip_vision_model",
        default_encoder_section=PALIGEMMA_VISION,
    )
    conditions = (sizes.encoder_has_image_size,)
    added_keys = {"language": {"use_bidirectional_attention": True}}

    vision: sizes.Tower
    d_projected: sizes.Positive = sizes.hf("projection_dim")

    def project(c: Any, x: Data, *places: Data) -> Data:
        return ops.linear(x, "linear", "projector", c.d_projected, bias=True)


class Mistral3(Llava):
    """Squares of merge_size patches a side become one. Source: modeling_mistral3.py of the reference."""

    reference = "Mistral3ForConditionalGeneration"
    model_types = ("mistral3",)
    gguf = "mistral3 mistral4 llama"
    sections = sizes.Sections(
        "mistral",
        default_tie=True,
        default_section=MISTRAL_3,
        default_encoder="pixtral",
        default_encoder_section=parts.PIXTRAL,
    )
    absent_sections = {"language": {"rms_norm_eps": 1e-5, "rope_theta": 1e9, "sliding_window": None}}
    places = parts.places_of_patches

    n_views: sizes.Positive = sizes.derived(n_views(-1))
    merge_size: sizes.Positive = sizes.hf("spatial_merge_size")

    views = sizes.setting(default=viewed_layers(-1))
    selection = "full"

    def encode(c: Any, pixels: Data) -> Data:
        return c.vision.forward(pixels, (c.views, 1))

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = ops.rms_norm(x, "norm", c.language.norm_eps)
        x = ops.merge_squares(x, c.merge_size * c.merge_size, *places, channels_first=True)
        x = ops.linear(x, "patch_merger.merging_layer", "projector", c.vision.d_model)
        return c.widen(ops.reshape(x, c.n_views * c.vision.d_model))


class LightOnOcr(Mistral3):
    """Source: arXiv:2601.14251, section 2; modeling_lighton_ocr.py of the reference."""

    reference = "LightOnOcrForConditionalGeneration"
    model_types = ("lighton_ocr",)
    sections = sizes.Sections(
        "qwen3",
        default_tie=True,
        default_section=LIGHTON,
        default_encoder="pixtral",
        default_encoder_section=parts.PIXTRAL,
    )
    reference_names = {}
    absent_sections = {"language": {"rope_theta": 1e6}}
    encoder_prefix = "model.vision_encoder."
    projector_prefix = "model.vision_projection."
    moved = ("model.", "model.language_model.")

    n_views: sizes.Positive = sizes.derived(lambda js, c: 1)
    projector_bias: sizes.Flag = sizes.derived(lambda js, c: False)

    image_token = sizes.setting("image_token_id")
    views = sizes.setting(default=(-1,))
    activation = sizes.setting(default="gelu")
