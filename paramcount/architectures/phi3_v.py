"""Phi-3 and Phi-3.5 Vision: CLIP's vision encoder, squares of four patches through two matrices, Phi-3's layers."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from paramcount.architectures.phi3 import Phi3
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

VISION = "model.vision_embed_tokens."
RELEASED: Mapping[str, Mapping[str, Any]] = {
    "img_processor": {
        "name": "clip_vision_model",
        "model_name": "openai/clip-vit-large-patch14-336",
        "image_dim_out": 1024,
    },
    "embd_layer": {
        "embedding_cls": "image",
        "projection_cls": "mlp",
        "use_hd_transform": True,
        "with_learnable_separator": True,
    },
}


def as_released(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The published code knows other projectors too, which no release has; its vision encoder is a constant."""
    for section, keys in RELEASED.items():
        block = js.get(section)
        for key, value in keys.items():
            found = block.get(key) if isinstance(block, Mapping) else None
            if found != value or type(found) is not type(value):
                state = "is missing" if found is None else f"= {describe_value(found)} is not supported"
                raise ParamcountError(state, where=f"{section}.{key}", expected=describe_value(value), choices=(value,))


@cache
def clip() -> parts.ClipVision:
    """Source: CLIP_VIT_LARGE_PATCH14_336_CONFIG of image_embedding_phi3_v.py."""
    return parts.ClipVision(
        d_model=1024, n_layers=24, n_heads=16, d_head=64, d_ff=4096, n_channels=3, patch_size=14, n_patches=24 * 24
    )


class Phi3V(Phi3):
    """Source: arXiv:2404.14219, section 5; modeling_phi3_v.py and image_embedding_phi3_v.py of
    microsoft/Phi-3-vision-128k-instruct.
    """

    reference = "Phi3VForCausalLM of microsoft/Phi-3-vision-128k-instruct"
    conditions = (*Phi3.conditions, as_released)

    def forward(c, tokens: Data) -> Data:
        image = encode_image(c)
        return c.decode(parts.insert(c.embed(tokens), image))


def encode_image(c: Any) -> Data:
    """Pixels to vectors of the language model's size."""
    vision = clip()
    image = ops.block(vision.image(), VISION + "img_processor.vision_model.", vision.forward, part="vision")
    return ops.block(image, VISION, lambda x: project(c, x), part="projector")


def project(c: Any, x: Data) -> Data:
    """Squares of four patches, with learned separators behind rows and between views, through two matrices."""
    width = 4 * x.shape[-1]
    x = Data("merge", (x,), ("image", width))
    x = ops.elementwise(x, "separator", "glb_GN", "projector", 1, 1, width)
    x = ops.elementwise(x, "separator", "sub_GN", "projector", 1, 1, 1, width)
    h = ops.activate(ops.linear(x, "img_projection.0", "projector", c.d_model, bias=True), "gelu")
    return ops.linear(h, "img_projection.2", "projector", c.d_model, bias=True)
