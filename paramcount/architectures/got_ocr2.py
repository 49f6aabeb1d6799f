"""GOT-OCR 2: a SAM tower whose image is narrowed to a sixteenth by two convolutions, before Qwen 2."""

from typing import Any

from paramcount.flow import Data, convolve_image, linear
from paramcount.parts.composite import FORMER_PREFIXES, Multimodal
from paramcount.parts.sam import SamVision
from paramcount.sizes import setting
from paramcount.sizes.sections import Sections

GOT = {
    "vocab_size": 151860,
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
}


class GotOcr2(Multimodal):
    """Source: arXiv:2409.01704, section 3.2; GotOcr2MultiModalProjector of the reference."""

    reference = "GotOcr2ForConditionalGeneration"
    model_types = ("got_ocr2", "pp_chart2table")
    sections = Sections("qwen2", default_tie=True, default_section=GOT | {"tie_word_embeddings": True})
    reference_names = FORMER_PREFIXES
    absent_sections = {"language": {"rope_theta": 1e6}}
    copied_modules = ("modeling_pp_chart2table",)

    vision: SamVision

    image_token = setting("image_token_index", "image_token_id", default=151859)

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = convolve_image(x, "conv_upsampler1", "projector", 2 * c.vision.d_out, 3, stride=2)
        x = convolve_image(x, "conv_upsampler2", "projector", c.language.d_model, 3, stride=2)
        return linear(x, "multimodal_projector", "projector", c.language.d_model, bias=True)
