"""FNet: BERT with a Fourier transform of the whole text in the place of attention."""

from typing import ClassVar

from paramcount.flow import Data, Unreachable, fourier, linear
from paramcount.parts.classic import second_bias
from paramcount.parts.encoders import EncoderFlow, bert_mlp
from paramcount.sizes import Flag, Natural, Positive, hf, setting
from paramcount.sizes.conditions import padding_inside


class FNet(EncoderFlow):
    """Source: arXiv:2105.03824, section 3; FNetLayer of the reference."""

    reference = "FNetForMaskedLM"
    task_heads = "BERT_SENTENCES"
    conditions = (padding_inside(3),)
    prefix = "fnet."
    pooled: ClassVar[bool] = True  # for every head

    vocab_size: Positive = hf()
    d_model: Positive = hf()
    n_layers: Natural = hf()
    d_ff: Natural = hf()
    n_positions: Positive = hf("max_position_embeddings")
    n_token_types: Positive = hf()
    tie_word_embeddings: Flag = hf()

    activation = setting("hidden_act", default="gelu_new")

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = super().embed(tokens, *reads)
        return linear(x, "fnet.embeddings.projection", "other", c.d_model, bias=True)

    def layer(c, x: Data, *memory: Data) -> Data:
        x = c.norm(x + fourier(x), "fourier.output.LayerNorm")
        return c.norm(x + bert_mlp(c, x), "output.LayerNorm")

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return second_bias(c, tokens, "cls.predictions.bias")
