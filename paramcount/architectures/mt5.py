"""mT5: T5 with gated feed-forward and a table for a hundred languages, whose head never scales what it reads."""

from collections.abc import Iterable

from paramcount.architectures.t5 import T5, EncoderAlone, decoder_layers, dense_activation, gated
from paramcount.declare import ops, parts, sizes


class MT5(T5):
    """Source: arXiv:2010.11934, section 3.2. As with T5, the released files hold a head of its own."""

    reference = "MT5ForConditionalGeneration"
    gguf = "t5"
    task_heads = parts.t5("mt5.MT5EncoderModel")

    n_decoder_layers: sizes.Natural = sizes.hf("num_decoder_layers", absent=decoder_layers(8), null=sizes.ABSENT)
    gated: sizes.Flag = sizes.derived(lambda js, c: gated(js, c, "gated-gelu"))
    scaled: sizes.Flag = sizes.derived(lambda js, c: False)
    tie_word_embeddings: sizes.Flag = sizes.fixed(True, check=lambda js, c: sizes.flag(js, "tie_word_embeddings", True))

    activation = sizes.setting(default=lambda js, c: dense_activation(js, c, "gated-gelu"))


class MT5Encoder(EncoderAlone, MT5):
    reference = "MT5EncoderModel"
    model_types = ("mt5.MT5EncoderModel",)


class UMT5(MT5):
    """UMT5: mT5 with a table of relative positions in every layer.

    Source: arXiv:2304.09151. As with mT5, the released files hold a head of its own.
    """

    reference = "UMT5ForConditionalGeneration"
    model_types = ("umt5",)
    gguf = "t5"
    task_heads = parts.t5("umt5.UMT5EncoderModel")
    shares_bias = False

    scaled: sizes.Flag = sizes.derived(lambda js, c: True)
    tie_word_embeddings: sizes.Flag = sizes.fixed(True)

    def encoder_layers(c) -> Iterable[tuple[str, ops.Size]]:
        return [("layer", c.n_layers)]

    def decoder_layers(c) -> Iterable[tuple[str, ops.Size]]:
        return [("layer", c.n_decoder_layers)]


class UMT5Encoder(EncoderAlone, UMT5):
    reference = "UMT5EncoderModel"
    model_types = ("umt5.UMT5EncoderModel",)
