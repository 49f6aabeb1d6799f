"""VideoChat-Flash: UMT's video encoder, whose similar patches are merged, and Qwen2.

VIRST adds SAM 2 and modules that prompt it, which are not counted: config.json does not state their sizes.
"""

from typing import Any

from paramcount.architectures.llava_released import LlavaQwen
from paramcount.declare import Data, parts, sizes

ENCODERS = ("umt-hd-large", "umt-large")  # they differ in the sizes of images


def encoder_is_known(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The code builds no other encoder, without the layers behind the one that is looked at, and no other projector."""
    known = {"mm_vision_tower": ENCODERS, "mm_vision_select_layer": (-2,), "mm_hidden_size": (1024,)}
    for key, values in known.items():
        if js.get(key) not in values:
            raise sizes.make_value_error(js.get(key), key, " or ".join(map(str, values)))


class VideoChatFlash(LlavaQwen):
    """Source: arXiv:2501.00574; modeling_videochat_flash.py of OpenGVLab/VideoChat-Flash-Qwen2-7B_res448."""

    reference = "VideoChatFlashQwenForCausalLM of OpenGVLab/VideoChat-Flash-Qwen2-7B_res448"
    model_types = ("videochat_flash_qwen",)
    released_as = {}
    sections = sizes.Sections("qwen2", ignores_model_type=True, is_flat=True)
    unused_keys = (
        "llm_compress_layer_list", "min_slow_num_frames", "mm_local_num_frames", "mm_num_compress_latents",
        "mm_pos_num_frames",
    )  # fmt: skip
    conditions = (  # type: ignore[assignment]
        encoder_is_known,
        sizes.one_of("mm_projector_type", ("tome16_mlp_hd64",), "linear"),
        sizes.one_of("mm_patch_merge_type", ("flat", "spatial", "spatial_nopad"), "flat"),
        sizes.one_of("mm_newline_position", ("nothing",), "nothing"),
    )
    encoder_prefix = "model.vision_tower.vision_tower.encoder."
    projector_prefix = "model.mm_projector."
    projector = ("mlp.0", "mlp.2")

    vision: parts.UmtVision
    n_views: sizes.Positive = sizes.derived(lambda js, c: 1)
    n_matrices = sizes.constant(2)
    ends_rows = sizes.constant(False)

    views = (-1,)

    def project(c: Any, x: Data, *places: Data) -> Data:
        return c.widen(Data("merge similar patches", (x,), ("image tokens", c.vision.d_model)))


class Virst(VideoChatFlash):
    """SAM 2 and what prompts it are built from files that config.json names. Source: VIRST.py of AIDASLab/VIRST."""

    reference = "VirstForCausalLM of AIDASLab/VIRST"
    model_types = ("virst",)
    released_as = {}
    sections = sizes.Sections(
        "qwen2",
        ignores_model_type=True,
        is_flat=True,
        default_encoder="sam2",  # which paramcount does not have: the language model alone is counted
        other_sections=("vision_config", "sam2_config", "token_proj"),
    )
