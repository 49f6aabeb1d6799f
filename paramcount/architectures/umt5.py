"""UMT5: mT5 with a table of relative positions in every layer."""

from collections.abc import Iterable

from paramcount.architectures.mt5 import MT5
from paramcount.architectures.t5 import BUCKETS_OF_AN_ENCODER
from paramcount.flow import Data, Size
from paramcount.sizes import Flag, derived


class UMT5(MT5):
    """Source: arXiv:2304.09151. As with mT5, the released files hold a head of its own."""

    reference = "UMT5ForConditionalGeneration"
    float32_if_float16 = ("wo",)
    shares_bias = False

    scaled: Flag = derived(lambda js, c: True)
    tie_word_embeddings: Flag = derived(lambda js, c: True)

    def encoder_layers(c) -> Iterable[tuple[str, Size]]:
        return [("layer", c.n_layers)]

    def decoder_layers(c) -> Iterable[tuple[str, Size]]:
        return [("layer", c.n_decoder_layers)]


class UMT5Encoder(UMT5):
    """The encoder alone."""

    reference = "UMT5EncoderModel"
    conditions = BUCKETS_OF_AN_ENCODER
    float32_if_float16 = ("wo",)

    def forward(c, tokens: Data) -> Data:
        return c.encode(tokens)
