"""GOT-OCR 2: a SAM tower whose image is narrowed to a sixteenth by two convolutions, before Qwen 2."""

from typing import Any

from paramcount.flow import Data, convolve_image, linear
from paramcount.parts.composite import FORMER_PREFIXES, Multimodal
from paramcount.parts.sam import SamVision
from paramcount.sizes import setting


class GotOcr2(Multimodal):
    """Source: arXiv:2409.01704, section 3.2; GotOcr2MultiModalProjector of the reference."""

    reference = "GotOcr2ForConditionalGeneration"
    reference_names = FORMER_PREFIXES
    absent_sections = {"language": {"rope_theta": 1e6}}
    copied_modules = ("modeling_pp_chart2table",)

    vision: SamVision

    image_token = setting("image_token_index", "image_token_id", default=151859)

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = convolve_image(x, "conv_upsampler1", "projector", 2 * c.vision.d_out, 3, stride=2)
        x = convolve_image(x, "conv_upsampler2", "projector", c.language.d_model, 3, stride=2)
        return linear(x, "multimodal_projector", "projector", c.language.d_model, bias=True)
