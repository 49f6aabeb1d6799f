"""UMT5: mT5 with a table of relative positions in every layer."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.mt5 import MT5
from paramcount.architectures.t5 import BUCKETS_OF_AN_ENCODER, decoder, encoder, source_tokens
from paramcount.flow import Data
from paramcount.sizes import Condition, Flag, derived


class UMT5(MT5):
    """Source: arXiv:2304.09151. As with mT5, the released files hold a head of its own."""

    reference: ClassVar[str] = "UMT5ForConditionalGeneration"
    float32_if_float16: ClassVar[tuple[str, ...]] = ("wo",)

    scaled: Flag = derived(lambda js, c: True)
    tie_word_embeddings: Flag = derived(lambda js, c: True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, encoder(c, source_tokens(), table_each=True), table_each=True)


class UMT5Encoder(UMT5):
    """The encoder alone."""

    reference: ClassVar[str] = "UMT5EncoderModel"
    conditions: ClassVar[tuple[Condition, ...]] = BUCKETS_OF_AN_ENCODER
    float32_if_float16: ClassVar[tuple[str, ...]] = ("wo",)

    def forward(c, tokens: Data) -> Data:
        return encoder(c, tokens, table_each=True)
