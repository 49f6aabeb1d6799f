"""Pegasus: a pre-norm encoder-decoder with fixed sinusoidal positions, stored as a frozen table."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.bart import Decoder, Seq2Seq
from paramcount.flow import Data
from paramcount.parts.seq2seq import Layout, decoder_alone, seq2seq
from paramcount.sizes import Condition
from paramcount.sizes.conditions import padding_inside

LAYOUT = Layout(before=True, last_norm="layer_norm")


class Pegasus(Seq2Seq):
    """Source: arXiv:1912.08777; modeling_pegasus.py of the reference."""

    reference: ClassVar[str] = "PegasusForConditionalGeneration"
    not_saved: ClassVar[tuple[str, ...]] = ("embed_positions.weight",)  # its keys_to_never_save in transformers 3.5
    conditions: ClassVar[tuple[Condition, ...]] = (padding_inside(0),)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return seq2seq(c, tokens, LAYOUT, head=head)


class PegasusDecoder(Decoder):
    """Source: arXiv:1912.08777; modeling_pegasus.py of the reference."""

    reference: ClassVar[str] = "PegasusForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_inside(0),)

    def forward(c, tokens: Data) -> Data:
        return decoder_alone(c, tokens, LAYOUT)
