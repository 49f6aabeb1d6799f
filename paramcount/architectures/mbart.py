"""mBART and mBART-50: BART with its norms before what they belong to, and one more behind the last layer."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.bart import Decoder, Seq2Seq
from paramcount.flow import Data
from paramcount.parts.seq2seq import Layout, decoder_alone, seq2seq

LAYOUT = Layout(before=True, extra_places=2, tables_normed=True, last_norm="layer_norm")


class MBart(Seq2Seq):
    """Source: arXiv:2001.08210, section 2.2."""

    reference: ClassVar[str] = "MBartForConditionalGeneration"

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return seq2seq(c, tokens, LAYOUT, head=head)


class MBartDecoder(Decoder):
    """Source: arXiv:2001.08210, section 2.2."""

    reference: ClassVar[str] = "MBartForCausalLM"

    def forward(c, tokens: Data) -> Data:
        return decoder_alone(c, tokens, LAYOUT)
