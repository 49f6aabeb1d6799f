"""LLaVA-NeXT and LLaVA-OneVision: a learned vector ends the tiles of an image. Video-LLaVA: an encoder for videos.

An image here is one tile, a video one frame.
"""

from collections.abc import Sequence
from typing import Any

from paramcount.architectures.llava import Llava, n_views, viewed_layers
from paramcount.declare import Data, ops, parts, sizes

POOLS = ("average", "max", "conv")


SMALL_CLIP = parts.CLIP | {"image_size": 224}


class LlavaNext(Llava):
    """Source: modeling_llava_next.py of the reference."""

    reference = "LlavaNextForConditionalGeneration"
    sections = sizes.Sections("llama", default_encoder="clip_vision_model", default_encoder_section=parts.CLIP)

    def see(c: Any) -> Data:
        def end(x: Data) -> Data:
            return ops.class_token(x, "image_newline", c.language.d_model, component="projector", last=True)

        return ops.block(parts.Multimodal.see(c), "", end, part="projector")


class LlavaNextVideo(LlavaNext):
    """Squares of patches of a video become one. Source: modeling_llava_next_video.py of the reference.

    `d_pooled`: after a convolution that pools.
    """

    reference = "LlavaNextVideoForConditionalGeneration"
    model_types = ("llava_next_video",)
    sections = sizes.Sections(
        "llama", tie_rule="either", default_encoder="clip_vision_model", default_encoder_section=parts.CLIP
    )
    conditions = (sizes.one_of("spatial_pool_mode", POOLS, "average"), sizes.encoder_has_image_size)

    is_convolved: sizes.Flag = sizes.derived(lambda js, c: js.get("spatial_pool_mode", "average") == "conv")
    stride: sizes.Positive = sizes.hf("spatial_pool_stride")
    d_pooled: sizes.Positive = sizes.hf(
        "spatial_pool_out_channels",
        absent=lambda js, c: c["vision"].d_model,
        null=lambda js, c: None if c["is_convolved"] else c["vision"].d_model,
    )

    video_token = sizes.setting("video_token_index", "video_token_id")
    pooling = sizes.setting("spatial_pool_mode")

    def see_more(c: Any) -> Sequence[tuple[Data, int | ops.Unknown]]:
        pixels = ops.given("video", c.vision.n_channels, "height", "width")
        x = ops.tie_weights(ops.block(pixels, c.encoder_prefix, c.encode, part="vision"), c.encoder_prefix)
        places = ops.patch_places(pixels, c.vision.patch_size, c.vision.patch_size)
        x = ops.block(x, "vision_resampler.", c.pool, reads=(places,), part="projector")
        return (
            (
                ops.tie_weights(ops.block(x, c.projector_prefix, c.widen, part="projector"), c.projector_prefix),
                c.video_token,
            ),
        )

    def pool(c: Any, x: Data, *places: Data) -> Data:
        x = x if c.selection == "full" else ops.other_tokens(x)
        if not c.is_convolved:
            pool = ops.largest_of_squares if c.pooling == "max" else ops.mean_of_squares
            return pool(x, c.stride * c.stride, *places)
        merged = ops.merge_squares(x, c.stride * c.stride, *places, channels_first=True)
        shape = (c.d_pooled, c.vision.d_model, c.stride, c.stride)
        weights = (ops.Weight("pool.weight", "projector", shape), ops.Weight("pool.bias", "projector", (c.d_pooled,)))
        return Data(ops.Linear(), (merged,), ("image", c.d_pooled), weights)


class LlavaOneVision(LlavaNext):
    """Source: arXiv:2408.03326, section 3."""

    reference = "LlavaOnevisionForConditionalGeneration"
    model_types = ("llava_onevision",)
    sections = sizes.Sections(
        "qwen2", tie_rule="either", default_encoder="siglip_vision_model", default_encoder_section=parts.SIGLIP
    )

    n_views: sizes.Positive = sizes.derived(n_views(-1))

    views = sizes.setting(default=viewed_layers(-1))


class VideoLlava(Llava):
    """Source: arXiv:2311.10122, section 3.1."""

    reference = "VideoLlavaForConditionalGeneration"
    model_types = ("video_llava",)
    sections = sizes.Sections("llama", default_encoder="clip_vision_model", default_encoder_section=SMALL_CLIP)
    encoder_prefix = "image_tower."

    video_token = sizes.setting("video_token_index", "video_token_id")

    def see_more(c: Any) -> Sequence[tuple[Data, int | ops.Unknown]]:
        pixels = ops.given("video", c.vision.n_channels, "height", "width")
        x = ops.block(pixels, "video_tower.", c.encode, part="vision")
        return (
            (
                ops.tie_weights(ops.block(x, c.projector_prefix, c.widen, part="projector"), c.projector_prefix),
                c.video_token,
            ),
        )
