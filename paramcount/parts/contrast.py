"""Two encoders that are trained to give equal vectors for an image and a text that describes it, and what each of them
is alone.

Source: arXiv:2103.00020, section 2.3.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import sizes
from paramcount.flow import Data


def has_patches(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """An image is at least as large as a patch."""
    if c["n_patches"] < 1:
        raise sizes.make_value_error(js.get("image_size"), "image_size", f"at least patch_size = {c['patch_size']}")


class ImageAndText(sizes.Sizes):
    """A subclass adds `vision` and `text`, `represent_image` and `represent_text`."""

    base_model: ClassVar[str | None] = ""
    vision_prefix: ClassVar[str] = "vision_model."
    text_prefix: ClassVar[str] = "text_model."

    def forward(c, tokens: Data) -> Data:
        """Token ids, and an image, to how similar they are, [texts, images]."""
        text, image = (ops.plain_norm(x, "l2", 0.0) for x in (c.represent_text(tokens), c.represent_image()))
        return c.scale(ops.similarity(text, image))

    def represent_text(c, tokens: Data) -> Data:
        """One vector for the text."""
        raise NotImplementedError

    def represent_image(c) -> Data:
        """One vector for the image."""
        raise NotImplementedError

    def scale(c, x: Data) -> Data:
        """What makes logits of it."""
        return ops.multiply_vector(x, "logit_scale", "other", function="exp")


def encode_image(c: Any, prefix: str) -> Data:
    """The vectors of an image's patches, and what the encoder `c.vision` returns beside them."""
    return ops.block(c.vision.image(), prefix, c.vision.forward, part="vision")


def encode_text(c: Any, tokens: Data, prefix: str) -> Data:
    return ops.block(tokens, prefix, c.text.forward, part="encoder")


def project_apart(x: Data, name: str, width: ops.Size) -> Data:
    """Vectors of an encoder to those that are compared."""
    return ops.block(x, "", lambda x: ops.linear(x, name, "projector", width), part="projector")


class ImageAlone(sizes.Sizes):
    """One encoder of images. A subclass adds `vision`."""

    base_model: ClassVar[str | None] = ""
    vision_prefix: ClassVar[str] = "vision_model."

    def forward(c, tokens: Data) -> Data:
        return encode_image(c, c.vision_prefix)


class TextAlone(sizes.Sizes):
    """One encoder of texts. A subclass adds `text`."""

    base_model: ClassVar[str | None] = ""
    text_prefix: ClassVar[str] = "text_model."

    def forward(c, tokens: Data) -> Data:
        return encode_text(c, tokens, c.text_prefix)
