"""PP-FormulaNet: SAM's encoder, whose image is narrowed to a sixteenth, and mBART's decoder, which writes formulas."""

from typing import Any

from paramcount.architectures.mbart import MBartStacks
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


class PPFormulaNetVision(parts.SamVision):
    config_class = "PPFormulaNetVisionConfig"

    d_post_in: sizes.Positive = sizes.hf("post_conv_in_channels")
    d_post_half: sizes.Positive = sizes.hf("post_conv_mid_channels")
    d_post_out: sizes.Positive = sizes.hf("post_conv_out_channels")
    d_memory: sizes.Positive = sizes.hf("decoder_hidden_size")
    n_side: sizes.Positive = sizes.derived(parts.side(512))

    def project(c, x: Data) -> Data:
        x = ops.convolve_image(x, "conv1", "projector", c.d_post_half, 3, stride=2)
        x = ops.convolve_image(x, "conv2", "projector", c.d_post_out, 3, stride=2)
        x = ops.linear(x, "linear_1", "projector", c.d_post_out, bias=True)
        return ops.linear(x, "linear_2", "projector", c.d_memory, bias=True)

    def check(c) -> None:
        super().check()
        sizes.check_equal(c, "d_post_in", "d_out")


class PPFormulaNet(MBartStacks, parts.UntiedDecoder):
    """Source: arXiv:2503.18382, section 3; modeling_pp_formulanet.py of the reference."""

    reference = "PPFormulaNetForConditionalGeneration"
    base_model = "PPFormulaNetModel"
    section = "text_config"
    conditions = (*parts.UntiedDecoder.conditions, sizes.not_null("initializer_range"))
    unused_keys = ("encoder_layers", "encoder_attention_heads", "num_attention_heads", "num_hidden_layers")

    vision: PPFormulaNetVision

    embedding_scale = parts.scale_embedding(default=True)

    def source(c: Any) -> Data:
        """An image to vectors that the decoder reads."""
        x = ops.block(c.vision.image(), "model.encoder.", c.vision.forward, part="vision")
        return ops.block(x, "model.encoder.multi_modal_projector.", c.vision.project, part="projector")

    def check(c) -> None:
        super().check()
        if c.vision.d_memory != c.d_model:
            raise ParamcountError(
                f"= {c.vision.d_memory}, but the decoder reads vectors of {c.d_model} values",
                where="vision_config.decoder_hidden_size",
                expected=f"{c.d_model}",
            )
