"""Blenderbot 90M: BART's layout without its two rows of places that no text reaches."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.bart import Decoder, Seq2Seq
from paramcount.flow import Data
from paramcount.parts.seq2seq import Layout, decoder_alone, seq2seq
from paramcount.sizes import Condition
from paramcount.sizes.conditions import padding_inside

LAYOUT = Layout(tables_normed=True)


class BlenderbotSmall(Seq2Seq):
    """Source: arXiv:2004.13637, section 2.2."""

    reference: ClassVar[str] = "BlenderbotSmallForConditionalGeneration"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_inside(0),)
    defaults: ClassVar = {
        "d_model": 512,
        "n_encoder_layers": 8,
        "n_decoder_layers": 8,
        "d_encoder_ff": 2048,
        "d_decoder_ff": 2048,
        "n_positions": 512,
    }

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return seq2seq(c, tokens, LAYOUT, head=head)


class BlenderbotSmallDecoder(Decoder):
    """Source: arXiv:2004.13637, section 2.2."""

    reference: ClassVar[str] = "BlenderbotSmallForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_inside(0),)
    defaults: ClassVar = {"d_model": 512, "n_layers": 8, "d_ff": 2048, "n_positions": 512}

    def forward(c, tokens: Data) -> Data:
        return decoder_alone(c, tokens, LAYOUT)
