"""Models of the reference that read an image alone, or compare one with a text: what they lack to be built, summed and
run like the models that read tokens.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import transformers

from tests.oracle import images

# {class: (the value of its output that is compared, the shape of an image, as in images.IMAGES)}
SEEING: dict[str, tuple[str, tuple[int, ...]]] = {
    "CLIPModel": ("logits_per_text", (3, 12, 12)),
    "CLIPForImageClassification": ("logits", (3, 12, 12)),
    "CLIPVisionModel": ("last_hidden_state", (3, 12, 12)),
    "CLIPVisionModelWithProjection": ("image_embeds", (3, 12, 12)),
    "CLIPTextModelWithProjection": ("text_embeds", ()),
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


def find_patches(model: Any) -> Any:
    """The table of the text, or else the convolution that reads the image."""
    return (model.text_model if hasattr(model, "text_model") else model.vision_model).get_input_embeddings()


for name, (key, shape) in SEEING.items():
    cls = getattr(transformers, name)
    if key != "last_hidden_state":
        name_output(cls, key)
    if shape:
        images.ALWAYS_SEE.add(name)
        images.IMAGES = {**images.IMAGES, name: images.Image(shape, 0, images.arrange_one)}
for cls in (transformers.CLIPModel, transformers.CLIPForImageClassification):
    cls.get_input_embeddings = find_patches
    cls.main_input_name = "pixel_values"
transformers.CLIPTextModel.base_model_prefix = "text_model"  # the start of its names in released files
transformers.CLIPVisionModel.base_model_prefix = "vision_model"
for config in (transformers.CLIPVisionConfig,):
    config.vision_config = property(lambda config: config)
