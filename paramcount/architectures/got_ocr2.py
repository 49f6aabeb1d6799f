"""GOT-OCR 2: a SAM tower whose image is narrowed to a sixteenth by two convolutions, before Qwen 2."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes

GOT = {
    "vocab_size": 151860,
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
}


class GotOcr2(parts.FormerMultimodal):
    """Source: arXiv:2409.01704, section 3.2; GotOcr2MultiModalProjector of the reference."""

    reference = "GotOcr2ForConditionalGeneration"
    model_types = ("got_ocr2", "pp_chart2table")
    sections = sizes.Sections("qwen2", default_tie=True, default_section=GOT | {"tie_word_embeddings": True})
    absent_sections = {"language": {"rope_theta": 1e6}}
    copied_modules = ("modeling_pp_chart2table",)

    vision: parts.SamVision

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = ops.convolve_image(x, "conv_upsampler1", "projector", 2 * c.vision.d_out, 3, stride=2)
        x = ops.convolve_image(x, "conv_upsampler2", "projector", c.language.d_model, 3, stride=2)
        return ops.linear(x, "multimodal_projector", "projector", c.language.d_model, bias=True)
