"""LLaVA 1.5, LLaVA-NeXT and LLaVA-OneVision as their authors release them: the keys of the language model stand at the
top level, and `mm_vision_tower` names the release that the vision encoder is loaded from.

An encoder with another name is not counted.
"""

import re
from typing import Any

from paramcount.architectures.llava import Llava, n_views, viewed_layers
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

LARGE = {
    "model_type": "clip_vision_model",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_channels": 3,
    "patch_size": 14,
    "hidden_act": "quick_gelu",
    "layer_norm_eps": 1e-5,
}
SO400M = {
    "model_type": "siglip_vision_model",
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 26,
    "num_attention_heads": 16,
    "num_channels": 3,
    "patch_size": 14,
    "image_size": 384,
    "hidden_act": "gelu_pytorch_tanh",
    "layer_norm_eps": 1e-6,
    "vision_use_head": False,
}
# What the releases with these names are. Sources: CLIP_VIT_LARGE_PATCH14_336_CONFIG of image_embedding_phi3_v.py of
# microsoft/Phi-3-vision-128k-instruct; config.json of openai/clip-vit-large-patch14; siglip_encoder.py of
# LLaVA-VL/LLaVA-NeXT, which drops the last layer and the head.
TOWERS = {
    "openai/clip-vit-large-patch14-336": {**LARGE, "image_size": 336},
    "openai/clip-vit-large-patch14": {**LARGE, "image_size": 224},
    "google/siglip-so400m-patch14-384": SO400M,
}
NAMED = {"mm_vision_tower": ("vision_config", TOWERS)}
KEYS = ("mm_vision_select_layer",)
PROJECTORS = r"linear|mlp([1-9]\d?)x_gelu"


def count_matrices(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Of the projector. Source: multimodal_projector/builder.py."""
    kind = js.get("mm_projector_type", "linear")
    found = re.fullmatch(PROJECTORS, kind) if isinstance(kind, str) else None
    if not found:
        raise ParamcountError(
            f"= {describe_value(kind)} is not supported", where="mm_projector_type", expected="linear or mlp2x_gelu"
        )
    return int(found[1] or 1)


def ends_rows(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    """Whether a learned vector ends each row of patches."""
    return "unpad" in js.get("mm_patch_merge_type", "")


def encoder_fits(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The projector reads what one encoder returns."""
    for key in ("mm_resampler_type", "s2"):
        if js.get(key):
            raise ParamcountError(f"= {describe_value(js[key])} is not supported", where=key, expected="no such key")
    if (size := js.get("mm_hidden_size", c["vision"].d_model)) != c["vision"].d_model:
        expected = f"{c['vision'].d_model}, as of {js['mm_vision_tower']}"
        raise sizes.make_value_error(size, "mm_hidden_size", expected)


def find_viewed_layers(config: sizes.ConfigJson, c: Any) -> tuple[int, ...]:
    """Of SigLIP's layers, the last one that is left."""
    return viewed_layers(-2, KEYS)(config, c) if isinstance(c.vision, parts.ClipVision) else (-1,)


def flat(language: str, default_tie: bool = False) -> sizes.Sections:
    """The keys of a language model of this type, at the top level."""
    return sizes.Sections(
        language,
        ignores_model_type=True,
        is_flat=True,
        default_tie=default_tie,
        default_encoder="clip_vision_model",
        encoders=("clip_vision_model", "siglip_vision_model"),
    )


class LlavaLlama(Llava):
    """Source: arXiv:2310.03744; llava_arch.py and llava_llama.py of haotian-liu/LLaVA."""

    reference = "LlavaLlamaForCausalLM of haotian-liu/LLaVA"
    model_types = ("llava_llama",)
    released_as = {"llava": ("LlavaLlama",)}
    sections = flat("llama")
    named_sections = NAMED
    reference_names = {}
    conditions = (encoder_fits, sizes.one_of("mm_vision_select_feature", ("patch", "cls_patch"), "patch"))
    encoder_prefix = "model.vision_tower.vision_tower.vision_model."
    projector_prefix = "model."
    language_prefix = ""

    n_views: sizes.Positive = sizes.derived(n_views(-2, KEYS))
    projector_bias = sizes.constant(True)
    n_matrices: sizes.Positive = sizes.derived(count_matrices)
    ends_rows: sizes.Flag = sizes.derived(ends_rows)

    image_token = ops.Unknown("image_token")  # no id of the vocabulary
    views = sizes.setting(default=find_viewed_layers)
    selection = sizes.setting("mm_vision_select_feature", default="patch")
    activation = "gelu"

    def project(c: Any, x: Data, *places: Data) -> Data:
        if c.selection == "patch" and isinstance(c.vision, parts.ClipVision):
            x = ops.other_tokens(x)
        name = "mm_projector" if c.n_matrices == 1 else "mm_projector.0"
        x = ops.linear(x, name, "projector", c.language.d_model, bias=True)
        for i in range(1, c.n_matrices):
            x = ops.activate(x, c.activation)
            x = ops.linear(x, f"mm_projector.{2 * i}", "projector", c.language.d_model, bias=True)
        if c.ends_rows:
            x = ops.class_token(x, "image_newline", c.language.d_model, component="projector", last=True)
        return x


class LlavaMistral(LlavaLlama):
    """Source: llava_mistral.py of haotian-liu/LLaVA."""

    reference = "LlavaMistralForCausalLM of haotian-liu/LLaVA"
    model_types = ("llava_mistral",)
    released_as = {"llava": ("LlavaMistral",)}
    sections = flat("mistral")
    named_sections = NAMED


class LlavaQwen(LlavaLlama):
    """Source: arXiv:2408.03326, section 3; llava_qwen.py of LLaVA-VL/LLaVA-NeXT."""

    reference = "LlavaQwenForCausalLM of LLaVA-VL/LLaVA-NeXT"
    model_types = ("llava_qwen",)
    released_as = {"llava": ("LlavaQwen",)}
    sections = flat("qwen2")
    named_sections = NAMED
