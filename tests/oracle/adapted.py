"""Models of the reference that read an image alone, or compare one with a text: what they lack to be built, summed and
run like the models that read tokens.
"""

from __future__ import annotations

from inspect import signature
from types import SimpleNamespace
from typing import Any

import torch
import transformers

from tests.oracle import images

# {class: (the value of its output that is compared, the shape of an image, as in images.IMAGES)}
SEEING: dict[str, tuple[str, tuple[int, ...]]] = {
    "CLIPModel": ("logits_per_text", (3, 12, 12)),
    "CLIPForImageClassification": ("logits", (3, 12, 12)),
    "CLIPVisionModel": ("last_hidden_state", (3, 12, 12)),
    "CLIPVisionModelWithProjection": ("image_embeds", (3, 12, 12)),
    "CLIPTextModelWithProjection": ("text_embeds", ()),
    "SiglipModel": ("logits_per_text", (3, 12, 12)),
    "SiglipForImageClassification": ("logits", (3, 12, 12)),
    "SiglipVisionModel": ("last_hidden_state", (3, 12, 12)),
    "Siglip2Model": ("logits_per_text", (3, 12, 8)),
    "Siglip2ForImageClassification": ("logits", (3, 12, 8)),
    "Siglip2VisionModel": ("last_hidden_state", (3, 12, 8)),
}


def name_output(cls: Any, key: str) -> None:
    """Let a class return what is compared as its logits, with an axis of texts in front."""
    forward = cls.forward
    reads_tokens = "input_ids" in signature(forward).parameters

    def run(self: Any, *given: Any, input_ids: Any = None, **named: Any) -> Any:
        out = forward(self, *given, **named, **({"input_ids": input_ids} if reads_tokens else {}))
        out["logits"] = out[key][None]
        return out

    cls.forward = run


def take_pixels(cls: Any) -> None:
    """Let a class that reads the patches of images of any shape take an image."""
    forward = cls.forward

    def run(self: Any, pixel_values: Any, **named: Any) -> Any:
        if pixel_values.dim() < 4:  # patches already
            return forward(self, pixel_values, **named)
        side = getattr(self.config, "vision_config", self.config).patch_size
        rows, columns = (size // side for size in pixel_values.shape[2:])
        grid = pixel_values.unflatten(3, (columns, side)).unflatten(2, (rows, side))  # [n, channels, rows, side, …]
        named |= {
            "pixel_attention_mask": torch.ones((len(pixel_values), rows * columns), dtype=torch.long),
            "spatial_shapes": torch.tensor([[rows, columns]] * len(pixel_values)),
        }
        return forward(self, pixel_values=grid.permute(0, 2, 4, 3, 5, 1).flatten(1, 2).flatten(2), **named)

    run.__signature__ = signature(forward)  # type: ignore[attr-defined]
    cls.forward = run


def find_patches(model: Any) -> Any:
    """The table of the text, or else the matrix that reads the image, as a convolution."""
    if hasattr(model, "text_model"):
        return model.text_model.get_input_embeddings()
    weight = getattr(model, "vision_model", model).embeddings.patch_embedding.weight
    return SimpleNamespace(weight=weight if weight.dim() > 2 else weight[..., None, None])


for name, (key, shape) in SEEING.items():
    cls = getattr(transformers, name)
    if name.startswith("Siglip2"):
        take_pixels(cls)
    if key != "last_hidden_state":
        name_output(cls, key)
    if shape:
        images.ALWAYS_SEE.add(name)
        images.IMAGES = {**images.IMAGES, name: images.Image(shape, 0, images.arrange_one)}
for name, (_, shape) in SEEING.items():
    cls = getattr(transformers, name)
    if shape:
        cls.get_input_embeddings = find_patches
        cls.main_input_name = "pixel_values"
transformers.CLIPTextModel.base_model_prefix = "text_model"  # the start of its names in released files
transformers.CLIPVisionModel.base_model_prefix = "vision_model"
for config in (transformers.CLIPVisionConfig, transformers.SiglipVisionConfig, transformers.Siglip2VisionConfig):
    config.vision_config = property(lambda config: config)
# Where no config states an image size, as some do, it is two patches.
transformers.Siglip2VisionConfig.image_size = property(
    lambda config: vars(config).get("image_size", 2 * config.patch_size),
    lambda config, size: vars(config).__setitem__("image_size", size),
)
