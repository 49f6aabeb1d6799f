"""UMT5: mT5 with a table of relative positions in every layer."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.mt5 import MT5
from paramcount.architectures.t5 import encoder
from paramcount.flow import Data
from paramcount.sizes import Flag, derived


class UMT5(MT5):
    """Source: arXiv:2304.09151. As with mT5, the released files hold a head of its own."""

    reference: ClassVar[str] = "UMT5ForConditionalGeneration"
    table_each: ClassVar[bool] = True

    scaled: Flag = derived(lambda js, c: True)
    tie_word_embeddings: Flag = derived(lambda js, c: True)


class UMT5Encoder(UMT5):
    """The encoder alone."""

    reference: ClassVar[str] = "UMT5EncoderModel"

    def forward(c, tokens: Data) -> Data:
        return encoder(c, tokens)
