"""Images and audio for multimodal models: the same values for the flow and, as its processor arranges them, for the
reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

IMAGE_TOKEN, SOUND_TOKEN = 95, 94  # of all small configs
Arrange = Callable[[Any, Any, Any], dict[str, Any]]  # (pixels [channels, height, width], ids, sizes) to arguments
# Classes whose forward pass always needs an image.
ALWAYS_SEE = {
    "Blip2ForConditionalGeneration", "BlipForConditionalGeneration", "InstructBlipForConditionalGeneration",
    "InstructBlipVideoForConditionalGeneration", "Pix2StructForConditionalGeneration",
    "IdeficsForVisionText2Text", "Kosmos2ForConditionalGeneration", "VoxtralRealtimeForConditionalGeneration",
    "PI0ForConditionalGeneration", "PPFormulaNetForConditionalGeneration", "VisionEncoderDecoderModel",
    "KyutaiSpeechToTextForConditionalGeneration",
}  # fmt: skip
# Beginnings of classes whose encoder sees an image alone and whose decoder writes about it.
WRITERS = ("Pix2Struct", "PPFormulaNet", "VisionEncoderDecoder")


class Image(NamedTuple):
    """An input besides the text, and how many tokens stand for it."""

    shape: tuple[int, ...]
    n_tokens: int
    arrange: Arrange
    name: str = "pixels"
    n_frames: int = 0  # of a sound besides, which so many tokens stand for
    n_sound_tokens: int = 0


def arrange_one(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    return {"pixel_values": pixels[None]}


def arrange_with_question(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """InstructBLIP: the Q-Former reads the text too, here its first tokens."""
    return {"pixel_values": pixels[None], "qformer_input_ids": ids[:, :3]}


def arrange_with_places(patches: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Pix2Struct: patches of two rows, each after its row and its column."""
    import torch

    places = torch.tensor([[i // 3 + 1, i % 3 + 1] for i in range(len(patches))])
    return {"flattened_patches": torch.cat((places, patches), dim=1)[None]}


def arrange_with_mask(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """KOSMOS-2: which tokens stand for the image."""
    return {"pixel_values": pixels[None], "image_embeds_position_mask": (ids == IMAGE_TOKEN).long()}


def arrange_places_with_mask(patches: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """KOSMOS-2.5: the token before those of the image belongs to it too."""
    mask = (ids == IMAGE_TOKEN).long()
    mask[0, 2] = -1
    return {**arrange_with_places(patches, ids, sizes), "image_embeds_position_mask": mask}


def arrange_one_frame(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    return arrange_with_question(pixels[None], ids, sizes)


def arrange_in_frames(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """GIT: an image, or a video of equal frames."""
    return {"pixel_values": pixels.expand(1, len(sizes.frames), -1, -1, -1) if sizes.frames else pixels[None]}


def arrange_with_size(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    import torch

    return {"pixel_values": pixels[None], "image_sizes": torch.tensor([pixels.shape[1:]])}


def arrange_as_tiles(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """LLaVA-NeXT: an image without tiles besides the whole."""
    import torch

    return {"pixel_values": pixels[None, None], "image_sizes": torch.tensor([pixels.shape[1:]])}


def arrange_as_marked_tile(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Granite Docling: a page of one tile."""
    import torch

    return {"pixel_values": pixels[None, None], "pixel_attention_mask": torch.ones((1, 1), dtype=torch.bool)}


def arrange_as_page(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """NeoMME: patches with their channels last, and positions as its processor has them for a page."""
    from transformers.models.neomme.processing_neomme import NeoMMEProcessor

    side, n = sizes.patch_size, ids.shape[1]
    rows, columns = (size // side for size in pixels.shape[1:])
    patches = pixels.reshape(3, rows, side, columns, side).permute(1, 3, 2, 4, 0).reshape(rows * columns, -1)
    places = NeoMMEProcessor._image_positions(n, columns, device=ids.device)[:n]
    return {"pixel_values": patches, "position_ids": places.T[:, None]}


def arrange_as_parts(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Idefics, PerceptionLM: a list of parts per text."""
    return {"pixel_values": pixels[None, None]}


def arrange_as_patches(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Qwen: patches in squares that are merged later, an image in as many frames as a patch has."""
    import torch

    c = sizes.vision
    side, square, frames = c.patch_size, c.merge_size, c.n_frames
    channels, rows, columns = len(pixels), pixels.shape[1] // side, pixels.shape[2] // side
    grid = pixels.reshape(channels, rows // square, square, side, columns // square, square, side)
    patches = grid.permute(1, 4, 2, 5, 0, 3, 6)[:, :, :, :, :, None].expand(-1, -1, -1, -1, -1, frames, -1, -1)
    return {
        "pixel_values": patches.reshape(rows * columns, -1),
        "image_grid_thw": torch.tensor([[1, rows, columns]]),
        "mm_token_type_ids": (ids == IMAGE_TOKEN).int(),
    }


def arrange_in_grid(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Nemotron 3 Nano Omni: patches row by row, and how many rows and columns of them there are."""
    found = arrange_as_kimi(pixels, ids, sizes)
    return {"pixel_values": found["pixel_values"].flatten(1), "image_grid_hw": found["image_grid_thw"][:, 1:]}


def arrange_as_hunyuan(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches row by row."""
    found = arrange_as_kimi(pixels, ids, sizes)
    marks = (ids == IMAGE_TOKEN).int()
    return {**found, "pixel_values": found["pixel_values"].flatten(1), "mm_token_type_ids": marks}


def arrange_as_ernie(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches in squares that are merged later, and which tokens stand for them."""
    side, square = sizes.vision.patch_size, sizes.vision.merge_size
    channels, rows, columns = len(pixels), pixels.shape[1] // side, pixels.shape[2] // side
    grid = pixels.reshape(channels, rows // square, square, side, columns // square, square, side)
    patches = grid.permute(1, 4, 2, 5, 0, 3, 6).reshape(rows * columns, -1)
    marks = (ids == IMAGE_TOKEN).int()
    found = arrange_as_kimi(pixels, ids, sizes)
    return {**found, "pixel_values": patches, "mm_token_type_ids": marks, "moe_mm_token_type_ids": marks}


def arrange_as_squares(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches in squares that are merged later."""
    found = arrange_as_ernie(pixels, ids, sizes)
    return {key: found[key] for key in ("pixel_values", "image_grid_thw")}


def arrange_as_kimi(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches row by row, of one frame."""
    import torch

    side = sizes.vision.patch_size
    channels, rows, columns = len(pixels), pixels.shape[1] // side, pixels.shape[2] // side
    patches = pixels.reshape(channels, rows, side, columns, side).permute(1, 3, 0, 2, 4)
    return {
        "pixel_values": patches.reshape(rows * columns, channels, side, side),
        "image_grid_thw": torch.tensor([[1, rows, columns]]),
    }


def arrange_for_thinker(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Qwen's thinkers: patches in squares, and where each token stands in time, row and column.

    Only their generate() works out the places, if a token says that an image begins.
    """
    import torch

    side = sizes.vision.patch_size * sizes.vision.merge_size
    rows, columns = pixels.shape[1] // side, pixels.shape[2] // side
    start = int((ids[0] == IMAGE_TOKEN).nonzero()[0])
    before = torch.arange(start).expand(3, -1)
    down, across = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    image = torch.stack((torch.zeros(rows * columns, dtype=torch.long), down.flatten(), across.flatten())) + start
    n_after = ids.shape[1] - start - rows * columns
    after = torch.arange(n_after).expand(3, -1) + start + max(rows, columns)
    places = torch.cat((before, image, after), dim=1)[:, None]
    found = arrange_as_patches(pixels, ids, sizes)
    return {"pixel_values": found["pixel_values"], "image_grid_thw": found["image_grid_thw"], "position_ids": places}


def arrange_side_by_side(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """MiniCPM-V: patches row by row, as one strip."""
    import torch

    patches = arrange_as_kimi(pixels, ids, sizes)
    strip = patches["pixel_values"].permute(1, 2, 0, 3).flatten(2)
    return {"pixel_values": strip[None], "target_sizes": patches["image_grid_thw"][:, 1:].to(torch.int32)}


def arrange_with_channels_last(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Cosmos 3 Edge: patches in squares that are merged later, each with its channels last."""
    side, square = sizes.vision.patch_size, sizes.vision.merge_size
    channels, rows, columns = len(pixels), pixels.shape[1] // side, pixels.shape[2] // side
    grid = pixels.reshape(channels, rows // square, square, side, columns // square, square, side)
    patches = grid.permute(1, 4, 2, 5, 3, 6, 0).reshape(rows * columns, -1)
    found = arrange_as_kimi(pixels, ids, sizes)
    return {**found, "pixel_values": patches, "mm_token_type_ids": (ids == IMAGE_TOKEN).int()}


def arrange_in_rows(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """The same, of which the model merges squares later, or none."""
    import torch

    found = arrange_as_kimi(pixels, ids, sizes)
    if hasattr(sizes.vision, "merge_size"):
        return {**found, "mm_token_type_ids": (ids == IMAGE_TOKEN).int()}
    return {**found, "pixel_values": found["pixel_values"].flatten(1), "image_merge_sizes": torch.tensor([1])}


def arrange_as_rows_of_patches(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """SigLIP 2: patches row by row, each with its channels last."""
    import torch

    side = sizes.vision.patch_size
    channels, rows, columns = len(pixels), pixels.shape[1] // side, pixels.shape[2] // side
    patches = pixels.reshape(channels, rows, side, columns, side).permute(1, 3, 2, 4, 0)
    return {
        "pixel_values": patches.reshape(1, rows * columns, -1),
        "spatial_shapes": torch.tensor([[rows, columns]]),
        "pixel_attention_mask": torch.ones(1, rows * columns, dtype=torch.long),
    }


def arrange_as_frames_of_patches(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches row by row, each frame with its channels."""
    found = arrange_as_kimi(pixels, ids, sizes)
    patches = found["pixel_values"][:, None].expand(-1, sizes.vision.n_frames, -1, -1, -1)
    return {**found, "pixel_values": patches.reshape(len(patches), -1)}


def arrange_as_gemma4(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches, each with its channels last, and the column and the row of each; or frames."""
    import torch

    if not sizes.vision:
        frames = pixels[0].T[None, :, : 4 * sizes.audio.n_bands]
        return {"input_features": frames, "input_features_mask": torch.ones(frames.shape[:2], dtype=torch.bool)}
    side = sizes.vision.patch_size * getattr(sizes.vision, "n_pooled", 1)
    channels, rows, columns = len(pixels), pixels.shape[1] // side, pixels.shape[2] // side
    patches = pixels.reshape(channels, rows, side, columns, side).permute(1, 3, 2, 4, 0)
    down, across = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    places = torch.stack((across, down), dim=-1).reshape(1, -1, 2)
    return {"pixel_values": patches.reshape(1, rows * columns, -1), "image_position_ids": places}


def arrange_as_rows(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Fuyu: patches, each with its channels last."""
    return {"image_patches": pixels[None]}


def arrange_for_every_token(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """One image that all tokens look at."""
    import torch

    return {"pixel_values": pixels[None, None], "image_attention_mask": torch.ones((1, ids.shape[1], 1))}


def arrange_for_merging(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Inkling: both frames of each patch, with channels last."""
    patches = pixels.reshape(3, 4, 4, 6, 4).permute(1, 3, 2, 4, 0).reshape(24, 1, 4, 4, 3)
    return {"pixel_values": patches.repeat(1, 2, 1, 1, 1)}


def arrange_with_pooling(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Pixels of each patch, and the numbers of the four that become one vector."""
    import torch

    patches = pixels.reshape(3, 4, 4, 6, 4).permute(1, 3, 2, 4, 0).reshape(1, 24, 48)
    squares = torch.arange(24).reshape(2, 2, 3, 2).transpose(1, 2).reshape(6, 4)
    return {"pixel_values": patches, "image_token_pooling": squares, "image_grids": torch.tensor([[2, 3, 0, 0]])}


def arrange_as_audio(frames: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    import torch

    return {"input_features": frames.T[None], "input_features_mask": torch.ones(1, len(frames), dtype=torch.long)}


def arrange_with_input_mask(frames: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Fun-ASR-Nano: frames first."""
    import torch

    return {"input_features": frames[None], "input_features_mask": torch.ones(1, len(frames), dtype=torch.long)}


def arrange_as_frames(frames: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    return {"input_features": frames[None]}


def arrange_as_stream(frames: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    return {"input_features": frames.T[None]}


def arrange_for_robot(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """What one camera sees, the state of a robot, and noise instead of seven actions."""
    import torch

    return {
        "pixel_values": pixels[None, None],
        "pixel_attention_mask": torch.ones((1, 1), dtype=torch.bool),
        "attention_mask": torch.ones_like(ids),
        "state": torch.randn(1, sizes.d_robot_state),
        "noise": torch.randn(1, 7, sizes.d_action),
        "timestep": torch.tensor([0.3]),
    }


def arrange_as_sound(samples: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    return {"input_values": samples.T[None]}


def arrange_as_samples(samples: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Without the noise that VibeVoice adds to what it hears."""
    return {"input_values": samples.T[None], "sample": False}


def arrange_as_muse(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches with several frames, or samples if those are what the placeholders stand for."""
    if sizes.audio_token != IMAGE_TOKEN:
        return arrange_as_frames_of_patches(pixels, ids, sizes)
    n_samples = 6 * math.prod(sizes.audio.factors)
    return {"input_values": pixels.flatten()[None, :n_samples]}


def arrange_as_masked_audio(frames: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    import torch

    return {"input_features": frames.T[None], "feature_attention_mask": torch.ones(1, len(frames), dtype=torch.long)}


IMAGES: Mapping[str, Image] = {
    "BlipForConditionalGeneration": Image((3, 12, 12), 0, arrange_one),
    "PPFormulaNetForConditionalGeneration": Image((3, 32, 32), 0, arrange_one),
    "VisionEncoderDecoderModel": Image((3, 12, 12), 0, arrange_one),
    "Pix2StructForConditionalGeneration": Image((6, 12), 0, arrange_with_places, "flattened_patches"),
    "MusicFlamingoForConditionalGeneration": Image((16, 10), 4, arrange_as_audio, "log_mel_frames"),
    "Kosmos2ForConditionalGeneration": Image((3, 12, 12), 3, arrange_with_mask),
    "Kosmos2_5ForConditionalGeneration": Image((6, 12), 3, arrange_places_with_mask, "flattened_patches"),
    "Blip2ForConditionalGeneration": Image((3, 12, 12), 3, arrange_one),
    "InstructBlipForConditionalGeneration": Image((3, 12, 12), 3, arrange_with_question),
    "InstructBlipVideoForConditionalGeneration": Image((3, 12, 12), 3, arrange_one_frame),
    "LlavaForConditionalGeneration": Image((3, 12, 12), 9, arrange_one),
    "LlavaNextForConditionalGeneration": Image((3, 12, 12), 10, arrange_as_tiles),
    "LlavaNextVideoForConditionalGeneration": Image((3, 12, 12), 10, arrange_as_tiles),
    "LlavaOnevisionForConditionalGeneration": Image((3, 12, 12), 10, arrange_as_tiles),
    "VipLlavaForConditionalGeneration": Image((3, 12, 12), 9, arrange_one),
    "VideoLlavaForConditionalGeneration": Image((3, 12, 12), 9, arrange_one),
    "AyaVisionForConditionalGeneration": Image((3, 16, 16), 4, arrange_one),
    "Cohere2VisionForConditionalGeneration": Image((3, 16, 16), 4, arrange_one),
    "LightOnOcrForConditionalGeneration": Image((3, 16, 24), 6, arrange_with_size),
    "Exaone4_5_ForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "HyperCLOVAXVisionV2ForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Lfm2VlForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_rows_of_patches),
    "HunYuanVLForConditionalGeneration": Image((3, 16, 16), 8, arrange_as_hunyuan),
    "Ernie4_5_VLMoeForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_ernie),
    "DeepseekVLForConditionalGeneration": Image((3, 12, 12), 9, arrange_one),
    "JanusForConditionalGeneration": Image((3, 12, 12), 9, arrange_one),
    "Molmo2ForConditionalGeneration": Image((3, 16, 24), 6, arrange_with_pooling),
    "Florence2ForConditionalGeneration": Image((3, 32, 32), 17, arrange_one),
    "IdeficsForVisionText2Text": Image((3, 12, 12), 0, arrange_for_every_token),
    "Emu3ForConditionalGeneration": Image((3, 8, 8), 20, arrange_with_size),
    "ChameleonForConditionalGeneration": Image((3, 8, 8), 16, arrange_one),
    "AriaForConditionalGeneration": Image((3, 12, 12), 5, arrange_one),
    "Idefics2ForConditionalGeneration": Image((3, 12, 12), 5, arrange_as_parts),
    "Lfm3VlForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "MiniMaxM3SparseForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Dots3NoteForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_squares, n_frames=16, n_sound_tokens=2),
    "Step3p7ForConditionalGeneration": Image((3, 28, 28), 4, arrange_one),
    "Granite4VisionForConditionalGeneration": Image((3, 16, 16), 17, arrange_as_tiles),
    "GraniteDoclingForConditionalGeneration": Image((3, 16, 16), 4, arrange_as_marked_tile),
    "InklingForConditionalGeneration": Image((3, 16, 24), 24, arrange_for_merging),
    "NemotronH_Omni_Reasoning_V3": Image((3, 16, 24), 6, arrange_in_grid),
    "MuseGlimmerForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_frames_of_patches),
    "MuseSparkForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_muse),
    "PaliGemmaForConditionalGeneration": Image((3, 12, 12), 9, arrange_one),
    "PI0ForConditionalGeneration": Image((3, 12, 12), 9, arrange_for_robot),
    "Mistral3ForConditionalGeneration": Image((3, 16, 24), 6, arrange_with_size),
    "MistralLarge4ForConditionalGeneration": Image((3, 16, 24), 6, arrange_with_size),
    "Idefics3ForConditionalGeneration": Image((3, 16, 16), 4, arrange_as_parts),
    "NeoMMEForMaskedLM": Image((3, 8, 12), 6, arrange_as_page),
    "ModernVBertForMaskedLM": Image((3, 16, 16), 4, arrange_as_parts),
    "UltraVBertForMaskedLM": Image((3, 16, 16), 4, arrange_as_parts),
    "SmolVLMForConditionalGeneration": Image((3, 16, 16), 4, arrange_as_parts),
    "InternVLForConditionalGeneration": Image((3, 16, 16), 4, arrange_one),
    "QianfanOCRForConditionalGeneration": Image((3, 16, 16), 4, arrange_one),
    "Gemma3ForConditionalGeneration": Image((3, 16, 16), 4, arrange_one),
    "Gemma4ForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_gemma4),
    "Gemma4UnifiedForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_gemma4),
    "Kimi_K25ForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_kimi),
    "Llama4ForConditionalGeneration": Image((3, 16, 16), 4, arrange_one),
    "UnlimitedOcrForConditionalGeneration": Image((3, 32, 32), 7, arrange_one),
    "FastVlmForConditionalGeneration": Image((3, 64, 64), 16, arrange_one),
    "PerceptionLMForConditionalGeneration": Image((3, 56, 56), 4, arrange_as_parts),
    "GotOcr2ForConditionalGeneration": Image((3, 32, 32), 4, arrange_one),
    "GitForCausalLM": Image((3, 12, 12), 0, arrange_in_frames),
    "FuyuForCausalLM": Image((6, 48), 6, arrange_as_rows, "image_patches"),
    "Qwen2AudioForConditionalGeneration": Image((16, 10), 4, arrange_as_masked_audio, "log_mel_frames"),
    "VoxtralForConditionalGeneration": Image((16, 10), 2, arrange_as_audio, "log_mel_frames"),
    "FunAsrNanoForConditionalGeneration": Image((4, 10), 4, arrange_with_input_mask, "log_mel_frames"),
    "GraniteSpeechForConditionalGeneration": Image((7, 10), 3, arrange_as_frames, "log_mel_frames"),
    "GraniteSpeechPlusForConditionalGeneration": Image((7, 10), 3, arrange_as_frames, "log_mel_frames"),
    "VoxtralRealtimeForConditionalGeneration": Image((160, 10), 0, arrange_as_stream, "log_mel_frames"),
    "KyutaiSpeechToTextForConditionalGeneration": Image((492, 1), 0, arrange_as_sound, "samples"),
    "VibeVoiceAsrForConditionalGeneration": Image((24, 1), 4, arrange_as_samples, "samples"),
    "AudioFlamingo3ForConditionalGeneration": Image((16, 10), 4, arrange_as_audio, "log_mel_frames"),
    "MossTranscribeDiarizeForConditionalGeneration": Image((16, 10), 2, arrange_as_audio, "log_mel_frames"),
    "Qwen2VLForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Qwen2_5_VLForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Qwen3VLForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "CohereCompassForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Qwen3VLMoeForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Glm4vForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Glm46VForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Glm4vMoeForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Glm5NextForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "GlmOcrForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Cosmos3OmniForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Cosmos3EdgeForConditionalGeneration": Image((3, 16, 24), 6, arrange_with_channels_last),
    "MiniCPMV4_6ForConditionalGeneration": Image((3, 16, 32), 2, arrange_side_by_side),
    "MiniCPMOcrForConditionalGeneration": Image((3, 16, 32), 2, arrange_side_by_side),
    "VideoLlama3ForConditionalGeneration": Image((3, 16, 24), 24, arrange_in_rows),
    "PaddleOCRVLForConditionalGeneration": Image((3, 16, 24), 6, arrange_in_rows),
    "GlmAsrForConditionalGeneration": Image((16, 10), 2, arrange_as_audio, "log_mel_frames"),
    "Qwen3ASRForConditionalGeneration": Image((100, 10), 13, arrange_as_audio, "log_mel_frames"),
    "Qwen2_5OmniThinkerForConditionalGeneration": Image((3, 16, 24), 6, arrange_for_thinker),
    "Qwen2_5OmniForConditionalGeneration": Image((3, 16, 24), 6, arrange_for_thinker),
    "Qwen3OmniMoeThinkerForConditionalGeneration": Image((3, 16, 24), 6, arrange_for_thinker),
    "Qwen3OmniMoeForConditionalGeneration": Image((3, 16, 24), 6, arrange_for_thinker),
    "Qwen3_5ForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Qwen3_5MoeForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
}


def insert_placeholders(ids: Any, cls_name: str) -> Any:
    """Token ids with those that stand for an image after the third, and those for a sound two tokens later."""
    import torch

    if cls_name not in IMAGES:
        return ids
    image, sound = (
        torch.full((1, n), token)
        for n, token in ((IMAGES[cls_name].n_tokens, IMAGE_TOKEN), (IMAGES[cls_name].n_sound_tokens, SOUND_TOKEN))
    )
    ids = torch.where(ids == IMAGE_TOKEN, 3, ids)
    if IMAGES[cls_name].n_sound_tokens:
        ids = torch.where(ids == SOUND_TOKEN, 3, ids)
    return torch.cat((ids[:, :3], image, ids[:, 3:5], sound, ids[:, 5:]), dim=1)


def make_image(sizes: Any, cls_name: str, ids: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(arguments of the reference, inputs of the flow)."""
    import torch

    image = IMAGES[cls_name]
    values = torch.randn(image.shape)
    given, inputs = image.arrange(values, ids, sizes), {image.name: values.numpy()}
    if image.n_sound_tokens:
        frames = torch.randn(image.n_frames, sizes.audio.n_mels)
        lengths = torch.tensor([160 * image.n_frames])
        given |= {"input_features": frames.T[None], "chunk_sample_lengths": lengths}
        inputs["log_mel_frames"] = frames.numpy()
    elif "input_features" in given and image.name == "pixels":
        inputs = {"log_mel_frames": given["input_features"][0].numpy()}
    if "input_values" in given and image.name == "pixels":
        inputs = {"samples": given["input_values"].T.numpy()}
    if "image_embeds_position_mask" in given:
        mask = given["image_embeds_position_mask"][0].numpy()
        inputs["image_places"] = mask
        if cls_name.startswith("Kosmos2_5"):
            inputs["segments"] = abs(mask)
    if "moe_mm_token_type_ids" in given:
        inputs["tokens_of_images"] = given["moe_mm_token_type_ids"][0].numpy()
    if "flattened_patches" in given:
        places = given["flattened_patches"][0, :, :2].long().numpy()
        inputs |= {"patch_rows": places[:, 0], "patch_columns": places[:, 1]}
    if "image_token_pooling" in given:
        inputs["pooled_patches"] = given["image_token_pooling"].numpy()
    if "noise" in given:
        named = {"state": given["state"], "noisy_actions": given["noise"][0], "time": given["timestep"][:, None]}
        inputs |= {name: value.numpy() for name, value in named.items()}
    if "qformer_input_ids" in given:
        inputs["instruction_tokens"] = given["qformer_input_ids"][0].numpy()
    if hasattr(getattr(sizes, "language", None), "n_decoder_layers"):  # the same text for its encoder
        given, inputs = {"input_ids": ids, **given}, {"source_tokens": ids[0].numpy(), **inputs}
    return given, inputs
