"""LLaVA-NeXT and LLaVA-OneVision: a learned vector ends the tiles of an image. Video-LLaVA: an encoder for videos.

An image here is one tile, a video one frame.
"""

from collections.abc import Sequence
from typing import Any

from paramcount.architectures.llava import Llava, n_views, viewed_layers
from paramcount.flow import (
    Data,
    Linear,
    Unknown,
    Weight,
    block,
    class_token,
    given,
    largest_of_squares,
    mean_of_squares,
    merge_squares,
    other_tokens,
    patch_places,
)
from paramcount.parts.clip import CLIP
from paramcount.parts.composite import Multimodal
from paramcount.parts.siglip import SIGLIP
from paramcount.sizes import Flag, Positive, derived, hf, setting
from paramcount.sizes.conditions import encoder_has_image_size, one_of
from paramcount.sizes.sections import Sections

POOLS = ("average", "max", "conv")


SMALL_CLIP = CLIP | {"image_size": 224}


class LlavaNext(Llava):
    """Source: modeling_llava_next.py of the reference."""

    reference = "LlavaNextForConditionalGeneration"
    sections = Sections("llama", default_encoder="clip_vision_model", default_encoder_section=CLIP)

    def see(c: Any) -> Data:
        def end(x: Data) -> Data:
            return class_token(x, "image_newline", c.language.d_model, component="projector", last=True)

        return block(Multimodal.see(c), "", end, part="projector")


class LlavaNextVideo(LlavaNext):
    """Squares of patches of a video become one. Source: modeling_llava_next_video.py of the reference.

    `d_pooled`: after a convolution that pools.
    """

    reference = "LlavaNextVideoForConditionalGeneration"
    model_types = ("llava_next_video",)
    sections = Sections("llama", tie_rule="either", default_encoder="clip_vision_model", default_encoder_section=CLIP)
    conditions = (one_of("spatial_pool_mode", POOLS, "average"), encoder_has_image_size)

    is_convolved: Flag = derived(lambda js, c: js.get("spatial_pool_mode", "average") == "conv")
    stride: Positive = hf("spatial_pool_stride")
    d_pooled: Positive = hf(
        "spatial_pool_out_channels",
        absent=lambda js, c: c["vision"].d_model,
        null=lambda js, c: None if c["is_convolved"] else c["vision"].d_model,
    )

    image_token = setting("image_token_index", "image_token_id", default=32001)
    video_token = setting("video_token_index", "video_token_id", default=32000)
    pooling = setting("spatial_pool_mode", default="average")

    def see_more(c: Any) -> Sequence[tuple[Data, int | Unknown]]:
        pixels = given("video", c.vision.n_channels, "height", "width")
        x = block(pixels, c.encoder_prefix, c.encode, part="vision", tied_to=c.encoder_prefix)
        places = patch_places(pixels, c.vision.patch_size, c.vision.patch_size)
        x = block(x, "vision_resampler.", c.pool, reads=(places,), part="projector")
        return ((block(x, c.projector_prefix, c.widen, part="projector", tied_to=c.projector_prefix), c.video_token),)

    def pool(c: Any, x: Data, *places: Data) -> Data:
        x = x if c.selection == "full" else other_tokens(x)
        if not c.is_convolved:
            pool = largest_of_squares if c.pooling == "max" else mean_of_squares
            return pool(x, c.stride * c.stride, *places)
        merged = merge_squares(x, c.stride * c.stride, *places, channels_first=True)
        shape = (c.d_pooled, c.vision.d_model, c.stride, c.stride)
        weights = (Weight("pool.weight", "projector", shape), Weight("pool.bias", "projector", (c.d_pooled,)))
        return Data(Linear(), (merged,), ("image", c.d_pooled), weights)


class LlavaOneVision(LlavaNext):
    """Source: arXiv:2408.03326, section 3."""

    reference = "LlavaOnevisionForConditionalGeneration"
    model_types = ("llava_onevision",)
    sections = Sections(
        "qwen2", tie_rule="either", default_encoder="siglip_vision_model", default_encoder_section=SIGLIP
    )

    n_views: Positive = n_views(-1)

    image_token = setting("image_token_index", "image_token_id", default=151646)
    views = viewed_layers(-1)
    selection = setting("vision_feature_select_strategy", default="full")


class VideoLlava(Llava):
    """Source: arXiv:2311.10122, section 3.1."""

    reference = "VideoLlavaForConditionalGeneration"
    model_types = ("video_llava",)
    sections = Sections("llama", default_encoder="clip_vision_model", default_encoder_section=SMALL_CLIP)
    encoder_prefix = "image_tower."

    video_token = setting("video_token_index", "video_token_id", default=32001)

    def see_more(c: Any) -> Sequence[tuple[Data, int | Unknown]]:
        pixels = given("video", c.vision.n_channels, "height", "width")
        x = block(pixels, "video_tower.", c.encode, part="vision")
        return ((block(x, c.projector_prefix, c.widen, part="projector", tied_to=c.projector_prefix), c.video_token),)
