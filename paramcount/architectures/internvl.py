"""InternVL: its own vision encoder, which scales every residual update element-wise.

Squares of patches become one vector.
"""

from typing import Any, ClassVar

from paramcount.architectures.llava import viewed_layers
from paramcount.declare import Data, ops, parts, sizes


def sides(js: sizes.ConfigJson, key: str, absent: int) -> tuple[int, int]:
    """Height and width: one number is for both."""
    value = js.get(key, absent)
    both = (value, value) if type(value) is int else tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(both) != 2 or not all(type(side) is int and side > 0 for side in both):
        raise sizes.make_value_error(value, f"vision_config.{key}", "an integer, or height and width")
    return both[0], both[1]


def patch(axis: int) -> sizes.Derivation:
    return lambda js, c: sides(js, "patch_size", 14)[axis]


def n_patches(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    height, width = sides(js, "image_size", 448)
    return (height // c["patch_height"]) * (width // c["patch_width"])


class InternVisionLayers(parts.VisionEncoder):
    """Layers that scale what attention and MLP add."""

    layer_names: ClassVar[tuple[str, ...]]  # both norms and both scales

    def layer(c, x: Data, *reads: Data) -> Data:
        names = c.layer_names
        x = x + ops.multiply_vector(c.attend(c.norm(x, names[0])), names[2], "other", c.d_model)
        return x + ops.multiply_vector(parts.encoder_mlp(c, c.norm(x, names[1])), names[3], "other", c.d_model)

    def attend(c, x: Data) -> Data:
        raise NotImplementedError

    def norm(c, x: Data, name: str) -> Data:
        return (
            ops.layer_norm(x, name, c.norm_eps) if getattr(c, "norm_bias", True) else ops.rms_norm(x, name, c.norm_eps)
        )


class InternVision(InternVisionLayers):
    config_class = "InternVLVisionConfig"
    conditions = (sizes.one_of("norm_type", ("layer_norm", "rms_norm"), "layer_norm"),)
    layer_names = ("layernorm_before", "layernorm_after", "lambda_1", "lambda_2")
    layers_name: ClassVar[str] = "encoder.layer.{layer}."
    table_names: ClassVar[tuple[str, str, str]] = (  # of patches, class token and positions
        "embeddings.patch_embeddings.projection", "embeddings.cls_token", "embeddings.position_embeddings",
    )  # fmt: skip

    n_channels: sizes.Positive = sizes.hf("num_channels")
    patch_height: sizes.Positive = sizes.derived(patch(0))
    patch_width: sizes.Positive = sizes.derived(patch(1))
    n_patches: sizes.Natural = sizes.derived(n_patches)
    attention_bias: sizes.Flag = sizes.hf()
    qk_norm: sizes.Flag = sizes.hf("use_qk_norm")
    norm_bias: sizes.Flag = sizes.derived(lambda js, c: js.get("norm_type", "layer_norm") == "layer_norm")
    last_norm: sizes.Flag = sizes.derived(lambda js, c: not js.get("use_mean_pooling", True))
    mask_token: sizes.Flag = sizes.hf("use_mask_token")
    absolute_positions: sizes.Flag = sizes.hf("use_absolute_position_embeddings")

    def forward(c, pixels: Data, states: parts.States | None = None) -> Data:
        """One image to vectors of the class token and the patches. `states`: those of some layers instead."""
        x = c.encode(c.embed(pixels), name=c.layers_name)
        last = ops.layer_norm(x, "layernorm", c.norm_eps) if c.last_norm else x
        return last if states is None else ops.bundle(parts.select_states(x, states), last)

    def embed(c, pixels: Data) -> Data:
        patches, token, positions = c.table_names
        x = parts.embed_patches(pixels, patches, c.d_model, c.patch_height, c.patch_width, bias=True)
        if c.mask_token:
            mask = ops.Weight("embeddings.mask_token", "embedding", (1, 1, c.d_model))
            x = Data(ops.Undescribed("mask token"), (x,), x.shape, (mask,))
        x = ops.class_token(x, token, 1, 1, c.d_model)
        if c.absolute_positions:
            x = ops.add_positions(x, positions, 1, c.n_patches + 1, c.d_model)
        return x

    def attend(c, x: Data) -> Data:
        heads = (c.n_heads, c.d_head)
        q, k, v = (
            ops.linear(x, f"attention.{name}_proj", f"qkv.{name}", heads, bias=c.attention_bias) for name in "qkv"
        )
        if c.qk_norm:
            q, k = (ops.rms_norm(y, f"attention.{name}_norm", 1e-6, wide=True) for name, y in (("q", q), ("k", k)))
        a = ops.attend(q, k, v)  # [n, n_heads, d_head]
        return ops.linear(a, "attention.projection_layer", "output_projection", c.d_model, bias=True)


class InternVL(parts.FormerMultimodal):
    """Source: arXiv:2312.14238, section 3.2; the projector arXiv:2404.16821, section 3.1. `n_merged`: patches that
    become one vector.
    """

    reference = "InternVLForConditionalGeneration"
    gguf = "qwen2 qwen3 qwen3moe internlm2 llama gpt-oss"
    sections = sizes.Sections("qwen2", default_tie=True)
    projector_norm: ClassVar[str] = "layer_norm"

    vision: InternVision
    n_merged: sizes.Positive = sizes.derived(lambda js, c: int(1 / js.get("downsample_ratio", 0.5)) ** 2)

    image_token = sizes.setting("image_token_id")
    views: ClassVar = sizes.setting(default=viewed_layers(-1))
    activation: ClassVar = sizes.setting("projector_hidden_act")

    def encode(c: Any, pixels: Data) -> Data:
        return c.vision.forward(pixels) if c.views == (-1,) else c.vision.forward(pixels, (c.views, 1))

    def project(c: Any, x: Data, *places: Data) -> Data:
        """Squares of patches to vectors of the language model's size."""
        x = ops.merge_squares(ops.other_tokens(x), c.n_merged)
        return c.widen(ops.layer_norm(x, c.projector_norm, 1e-5))
