"""Blenderbot: a short encoder and a long decoder with learned places, norms before what they belong to."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.bart import Decoder, Seq2Seq
from paramcount.flow import Data
from paramcount.parts.seq2seq import Layout, decoder_alone, seq2seq
from paramcount.sizes import Condition
from paramcount.sizes.conditions import padding_inside

LAYOUT = Layout(before=True, last_norm="layer_norm")


class Blenderbot(Seq2Seq):
    """Source: arXiv:2004.13637, section 2.2."""

    reference: ClassVar[str] = "BlenderbotForConditionalGeneration"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_inside(0),)
    defaults: ClassVar = {
        "vocab_size": 8008,
        "d_model": 2560,
        "n_encoder_layers": 2,
        "n_decoder_layers": 24,
        "n_encoder_heads": 32,
        "n_decoder_heads": 32,
        "d_encoder_ff": 10240,
        "d_decoder_ff": 10240,
        "n_positions": 128,
    }

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return seq2seq(c, tokens, LAYOUT, head=head)


class BlenderbotDecoder(Decoder):
    """Source: arXiv:2004.13637, section 2.2."""

    reference: ClassVar[str] = "BlenderbotForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_inside(0),)
    defaults: ClassVar = {
        "vocab_size": 8008,
        "d_model": 2560,
        "n_layers": 24,
        "n_heads": 32,
        "d_ff": 10240,
        "n_positions": 128,
    }

    def forward(c, tokens: Data) -> Data:
        return decoder_alone(c, tokens, LAYOUT)
