"""PP-FormulaNet: SAM's encoder, whose image is narrowed to a sixteenth, and mBART's decoder, which writes formulas."""

from typing import Any

from paramcount.architectures.mbart import MBartStacks
from paramcount.errors import ParamcountError
from paramcount.flow import Data, block, convolve_image, linear
from paramcount.parts.sam import SamVision, side
from paramcount.parts.seq2seq import UntiedDecoder, scale_embedding
from paramcount.sizes import Positive, derived, hf
from paramcount.sizes.conditions import not_null
from paramcount.sizes.rules import check_equal


class PPFormulaNetVision(SamVision):
    config_class = "PPFormulaNetVisionConfig"
    section = "vision_config"

    d_post_in: Positive = hf("post_conv_in_channels")
    d_post_half: Positive = hf("post_conv_mid_channels")
    d_post_out: Positive = hf("post_conv_out_channels")
    d_memory: Positive = hf("decoder_hidden_size")
    n_side: Positive = derived(side(512))

    def project(c, x: Data) -> Data:
        x = convolve_image(x, "conv1", "projector", c.d_post_half, 3, stride=2)
        x = convolve_image(x, "conv2", "projector", c.d_post_out, 3, stride=2)
        x = linear(x, "linear_1", "projector", c.d_post_out, bias=True)
        return linear(x, "linear_2", "projector", c.d_memory, bias=True)

    def check(c) -> None:
        super().check()
        check_equal(c, "d_post_in", "d_out")


class PPFormulaNet(MBartStacks, UntiedDecoder):
    """Source: arXiv:2503.18382, section 3; modeling_pp_formulanet.py of the reference."""

    reference = "PPFormulaNetForConditionalGeneration"
    base_model = "PPFormulaNetModel"
    section = "text_config"
    conditions = (*UntiedDecoder.conditions, not_null("initializer_range"))
    unused_keys = ("encoder_layers", "encoder_attention_heads", "num_attention_heads", "num_hidden_layers")

    vision: PPFormulaNetVision

    embedding_scale = scale_embedding(default=True)

    def source(c: Any) -> Data:
        """An image to vectors that the decoder reads."""
        x = block(c.vision.image(), "model.encoder.", c.vision.forward, part="vision")
        return block(x, "model.encoder.multi_modal_projector.", c.vision.project, part="projector")

    def check(c) -> None:
        super().check()
        if c.vision.d_memory != c.d_model:
            raise ParamcountError(
                f"= {c.vision.d_memory}, but the decoder reads vectors of {c.d_model} values",
                where="vision_config.decoder_hidden_size",
                expected=f"{c.d_model}",
            )
