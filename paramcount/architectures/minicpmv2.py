"""MiniCPM-V 2.0: timm's SigLIP, whose sizes stand in its name, a resampler with learned queries, and MiniCPM."""

from math import isqrt

from paramcount.architectures.deepseek_vl_v2 import vision_encoder
from paramcount.architectures.minicpmv import MiniCPMV
from paramcount.declare import Data, ops, sizes
from paramcount.parts.resampler import Resampler

SO400M = "vit_so400m_patch14_siglip_384.webli"


class TimmSiglip(sizes.Sizes):
    """`n_patches`: of the images that it was trained with."""

    conditions = (sizes.one_of("vision_encoder", (SO400M,), SO400M),)

    d_model: sizes.Positive = sizes.derived(lambda js, c: 1152)
    n_layers: sizes.Natural = sizes.derived(lambda js, c: 26 if sizes.flag(js, "drop_vision_last_layer", True) else 27)
    n_heads: sizes.Positive = sizes.derived(lambda js, c: 16)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.derived(lambda js, c: 4304)
    patch_size: sizes.Positive = sizes.derived(lambda js, c: 14)
    n_patches: sizes.Natural = sizes.derived(lambda js, c: 27 * 27)


class MiniCPMV2(MiniCPMV):
    """Source: modeling_minicpmv.py and resampler.py of openbmb/MiniCPM-V-2."""

    reference = "MiniCPMV of openbmb/MiniCPM-V-2"
    released_as = {"minicpmv": ("vision_encoder",)}
    sections = sizes.Sections("minicpm", is_flat=True, default_tie=True, ignores_model_type=True)
    conditions = ()
    unused_keys = ("image_size", "patch_size", "scale_resolution")

    vision: TimmSiglip  # type: ignore[assignment]
    n_queries: sizes.Positive = sizes.derived(lambda js, c: isqrt(js.get("query_num", 64)) ** 2)

    def see(c) -> Data:
        size = c.vision.patch_size
        image = ops.block(ops.given("pixels", "patches", 3, size, size), c.encoder_prefix, c.encode, part="vision")
        return ops.block(image, c.projector_prefix, c.project, part="projector")

    def encode(c, pixels: Data) -> Data:
        return vision_encoder(c.vision, pixels)

    def resampler(c) -> Resampler:
        return super().resampler()._replace(has_table=True)
