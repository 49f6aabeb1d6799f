"""InternVL: its own vision encoder, which scales every residual update element-wise.

Squares of patches become one vector.
"""

from typing import Any, ClassVar

from paramcount.architectures.llava import viewed_layers
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import (
    add_positions,
    attend,
    bundle,
    class_token,
    linear,
    merge_squares,
    multiply_vector,
    other_tokens,
)
from paramcount.flow.graph import Data, Undescribed, Weight
from paramcount.flow.operations.elementwise import activate, layer_norm, rms_norm
from paramcount.parts.composite import FORMER_PREFIXES, Multimodal
from paramcount.parts.vision import States, VisionEncoder, embed_patches, encoder_mlp, select_states
from paramcount.sizes import ConfigJson, Derivation, FieldValues, Flag, Natural, Positive, derived, hf, setting
from paramcount.sizes.conditions import one_of
from paramcount.sizes.sections import Sections


def sides(js: ConfigJson, key: str, absent: int) -> tuple[int, int]:
    """Height and width: one number is for both."""
    value = js.get(key, absent)
    both = (value, value) if type(value) is int else tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(both) != 2 or not all(type(side) is int and side > 0 for side in both):
        raise ParamcountError(
            f"= {describe_value(value)}", where=f"vision_config.{key}", expected="an integer, or height and width"
        )
    return both[0], both[1]


def patch(axis: int) -> Derivation:
    return lambda js, c: sides(js, "patch_size", 14)[axis]


def n_patches(js: ConfigJson, c: FieldValues) -> int:
    height, width = sides(js, "image_size", 448)
    n: int = (height // c["patch_height"]) * (width // c["patch_width"])
    return n


class InternVisionLayers(VisionEncoder):
    """Layers that scale what attention and MLP add."""

    layer_names: ClassVar[tuple[str, ...]]  # both norms and both scales

    def layer(c, x: Data, *reads: Data) -> Data:
        names = c.layer_names
        x = x + multiply_vector(c.attend(c.norm(x, names[0])), names[2], "other", c.d_model)
        return x + multiply_vector(encoder_mlp(c, c.norm(x, names[1])), names[3], "other", c.d_model)

    def attend(c, x: Data) -> Data:
        raise NotImplementedError

    def norm(c, x: Data, name: str) -> Data:
        return layer_norm(x, name, c.norm_eps) if getattr(c, "norm_bias", True) else rms_norm(x, name, c.norm_eps)


class InternVision(InternVisionLayers):
    config_class = "InternVLVisionConfig"
    conditions = (one_of("norm_type", ("layer_norm", "rms_norm"), "layer_norm"),)
    layer_names = ("layernorm_before", "layernorm_after", "lambda_1", "lambda_2")
    layers_name: ClassVar[str] = "encoder.layer.{layer}."
    table_names: ClassVar[tuple[str, str, str]] = (  # of patches, class token and positions
        "embeddings.patch_embeddings.projection", "embeddings.cls_token", "embeddings.position_embeddings",
    )  # fmt: skip

    n_channels: Positive = hf("num_channels")
    patch_height: Positive = derived(patch(0))
    patch_width: Positive = derived(patch(1))
    n_patches: Natural = derived(n_patches)
    attention_bias: Flag = hf()
    qk_norm: Flag = hf("use_qk_norm")
    norm_bias: Flag = derived(lambda js, c: js.get("norm_type", "layer_norm") == "layer_norm")
    last_norm: Flag = derived(lambda js, c: not js.get("use_mean_pooling", True))
    mask_token: Flag = hf("use_mask_token")
    absolute_positions: Flag = hf("use_absolute_position_embeddings")

    def forward(c, pixels: Data, states: States | None = None) -> Data:
        """One image to vectors of the class token and the patches. `states`: those of some layers instead."""
        x = c.encode(c.embed(pixels), name=c.layers_name)
        last = layer_norm(x, "layernorm", c.norm_eps) if c.last_norm else x
        return last if states is None else bundle(select_states(x, states), last)

    def embed(c, pixels: Data) -> Data:
        patches, token, positions = c.table_names
        x = embed_patches(pixels, patches, c.d_model, c.patch_height, c.patch_width, bias=True)
        if c.mask_token:
            mask = Weight("embeddings.mask_token", "embedding", (1, 1, c.d_model))
            x = Data(Undescribed("mask token"), (x,), x.shape, (mask,))
        x = class_token(x, token, 1, 1, c.d_model)
        if c.absolute_positions:
            x = add_positions(x, positions, 1, c.n_patches + 1, c.d_model)
        return x

    def attend(c, x: Data) -> Data:
        heads = (c.n_heads, c.d_head)
        q, k, v = (linear(x, f"attention.{name}_proj", f"qkv.{name}", heads, bias=c.attention_bias) for name in "qkv")
        if c.qk_norm:
            q, k = (rms_norm(y, f"attention.{name}_norm", 1e-6, wide=True) for name, y in (("q", q), ("k", k)))
        a = attend(q, k, v, cached=())
        return linear(a, "attention.projection_layer", "output_projection", c.d_model, bias=True)


class InternVL(Multimodal):
    """Source: arXiv:2312.14238, section 3.2; the projector arXiv:2404.16821, section 3.1. `n_merged`: patches that
    become one vector.
    """

    reference = "InternVLForConditionalGeneration"
    gguf = "qwen2 qwen3 qwen3moe internlm2 llama gpt-oss"
    sections = Sections("qwen2", default_tie=True)
    reference_names = FORMER_PREFIXES
    projector: ClassVar[tuple[str, str, str]] = ("layer_norm", "linear_1", "linear_2")

    vision: InternVision
    n_merged: Positive = derived(lambda js, c: int(1 / js.get("downsample_ratio", 0.5)) ** 2)

    image_token = setting("image_token_id", default=151667)
    views: ClassVar = viewed_layers(-1)
    activation: ClassVar = setting("projector_hidden_act", default="gelu")

    def encode(c: Any, pixels: Data) -> Data:
        encoded: Data = c.vision.forward(pixels) if c.views == (-1,) else c.vision.forward(pixels, (c.views, 1))
        return encoded

    def project(c: Any, x: Data, *places: Data) -> Data:
        """Squares of patches to vectors of the language model's size."""
        names = c.projector
        x = merge_squares(other_tokens(x), c.n_merged)
        h = linear(layer_norm(x, names[0], 1e-5), names[1], "projector", c.language.d_model, bias=True)
        return linear(activate(h, c.activation), names[2], "projector", c.language.d_model, bias=True)
