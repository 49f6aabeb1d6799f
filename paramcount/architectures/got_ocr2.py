"""GOT-OCR 2: a SAM tower whose image is narrowed to a sixteenth by two convolutions, before Qwen 2."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import SerializeAsAny

from paramcount.flow import Data, Size, Weight, block, given, linear
from paramcount.parts.composite import with_language
from paramcount.parts.sam import SamVision, sam
from paramcount.sizes import Sizes
from paramcount.sizes.setting_fields import setting


class GotOcr2(Sizes):
    """Source: arXiv:2409.01704, section 3.2."""

    reference: ClassVar[str] = "GotOcr2ForConditionalGeneration"

    language: SerializeAsAny[Sizes]
    vision: SamVision

    image_token: ClassVar = setting("image_token_index", "image_token_id", default=151859)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return with_language(c, tokens, seen(c), head=head, token=c.image_token)

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)


def seen(c: Any) -> Data:
    """Pixels to vectors of the language model's width."""
    eyes = c.vision
    pixels = given("pixels", "patches", eyes.n_channels, eyes.patch_size, eyes.patch_size)
    image = block(pixels, "vision_tower.", lambda x: sam(eyes, x), part="vision")
    return block(
        image, "multi_modal_projector.", lambda x: project(x, 2 * eyes.d_out, c.language.d_model), part="projector"
    )


def project(x: Data, wide: Size, d_model: Size) -> Data:
    for name, width in (("conv_upsampler1", wide), ("conv_upsampler2", d_model)):
        x = Data(
            "convolve", (x,), ("image", width), (Weight(name + ".weight", "projector", (width, x.shape[1], 3, 3)),)
        )
    return linear(x, "multimodal_projector", "projector", d_model, bias=True)
