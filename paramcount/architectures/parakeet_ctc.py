"""Parakeet: a Fast Conformer on mel frames, and scores of the tokens for each frame that it leaves."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName


def convolves_around(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """A convolution over an even number of frames would leave one frame less."""
    if c["n_layers"] and c["d_conv"] % 2 == 0:
        raise sizes.make_value_error(c["d_conv"], FieldName("d_conv"), "an odd number")


class ParakeetEncoder(parts.ParakeetEars):
    section = "encoder_config"
    config_class = "ParakeetEncoderConfig"
    unused_keys = ("num_key_value_heads",)  # as many as heads, which the reference writes
    conditions = (convolves_around,)


class ParakeetCtc(parts.Headed):
    """Source: arXiv:2305.05084, section 2; ParakeetForCTC of the reference."""

    reference = "ParakeetForCTC"
    base_model = ""

    encoder: ParakeetEncoder
    vocab_size: sizes.Positive = sizes.hf()

    def forward(c: Any, tokens: Data, head: bool = True) -> Data:
        """Mel frames to scores of the tokens, or without `head` to states."""

        def build(frames: Data) -> Data:
            x = ops.block(frames, "encoder.", c.encoder.forward)
            return ops.convolve_tokens(x, "ctc_head", c.vocab_size, 1, component="lm_head") if head else x

        return ops.block(ops.given("mel frames", "frames", c.encoder.n_mels), "", build, part="encoder")
