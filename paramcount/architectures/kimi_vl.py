"""Kimi-VL: MoonViT over images of any shape, squares of patches through two matrices, DeepSeek-V3's layers."""

from typing import Any

from pydantic import SerializeAsAny

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Unknown, activate, attend, block, elementwise, given, layers, linear, norm, rope
from paramcount.parts.attentions import fused_qkv
from paramcount.parts.composite import with_language
from paramcount.parts.decoders import pre_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.vision import cut_into_patches
from paramcount.sizes import ConfigJson, Derivation, FieldValues, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.rules import check_even, check_heads_fill


def merged(axis: int) -> Derivation:
    """How many patches become one vector, down (0) or across (1)."""

    def size(js: ConfigJson, c: FieldValues) -> Any:
        kernel = js.get("merge_kernel_size", (2, 2))
        if not isinstance(kernel, (list, tuple)) or len(kernel) != 2:
            raise ParamcountError(
                f"= {describe_value(kernel)}", where="vision_config.merge_kernel_size", expected="a height and a width"
            )
        return kernel[axis]

    return size


class MoonViT(Sizes):
    """The sizes of the vision encoder. Source: configuration_kimi_vl.py of moonshotai/Kimi-VL-A3B-Instruct."""

    section = "vision_config"

    d_model: Positive = hf(absent=1152)
    n_layers: Positive = hf(absent=27)
    n_heads: Positive = hf(absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=4304)
    patch_size: Positive = hf("patch_size", absent=14)
    n_rows: Positive = hf("init_pos_emb_height", absent=64)
    n_columns: Positive = hf("init_pos_emb_width", absent=64)
    merged_rows: Positive = derived(merged(0))
    merged_columns: Positive = derived(merged(1))

    def check(c) -> None:
        check_heads_fill(c)
        check_even(c, "d_head")


class KimiVL(Sizes):
    """Source: arXiv:2504.07491, section 2; modeling_kimi_vl.py of moonshotai/Kimi-VL-A3B-Instruct, and
    kimi_vl_moonvit.py of SGLang 0.5.23.
    """

    reference = "KimiVLForConditionalGeneration of moonshotai/Kimi-VL-A3B-Instruct"

    language: SerializeAsAny[Sizes]
    vision: MoonViT

    def forward(c, tokens: Data) -> Data:
        vision = c.vision
        pixels = given("pixels", "patches", 3, vision.patch_size, vision.patch_size)
        image = block(pixels, "vision_tower.", lambda x: vision_encoder(vision, x), part="vision")
        image = block(image, "multi_modal_projector.", lambda x: project(c, x), part="projector")
        return with_language(c, tokens, image, head=True, token=Unknown("image_token"))


def vision_encoder(c: Any, x: Data) -> Data:
    x = cut_into_patches(x, "patch_embed.proj", c.d_model, c.patch_size, bias=True)
    x = elementwise(x, "positions", "patch_embed.pos_emb.weight", "position", c.n_rows, c.n_columns, c.d_model)
    x = layers(x, "encoder.blocks.{layer}.", [("layer", c.n_layers)], lambda kind, x: layer(c, x))
    return norm(x, "encoder.final_layernorm", bias=True)


def layer(c: Any, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: attention(c, h),
        lambda h: plain_mlp(h, ("mlp.fc0", "mlp.fc1"), "mlp", c.d_ff, bias=True),
        ("norm0", "norm1"),
        bias=True,
    )


def attention(c: Any, x: Data) -> Data:
    q, k, v = fused_qkv(c, x, "wqkv")
    return linear(attend(rope(q), rope(k), v, cached=()), "wo", "output_projection", c.d_model, bias=True)


def project(c: Any, x: Data) -> Data:
    width = c.vision.merged_rows * c.vision.merged_columns * c.vision.d_model
    x = Data("merge", (norm(x, "pre_norm", bias=True),), ("image", width))
    return linear(
        activate(linear(x, "linear_1", "projector", width, bias=True), "gelu"),
        "linear_2",
        "projector",
        c.language.d_model,
        bias=True,
    )
