"""FNet: BERT with a Fourier transform of the whole text in the place of attention."""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes


class FNet(parts.EncoderFlow):
    """Source: arXiv:2105.03824, section 3; FNetLayer of the reference."""

    reference = "FNetForMaskedLM"
    task_heads = "BERT_SENTENCES"
    conditions = (sizes.padding_inside(3),)
    prefix = "fnet."
    pooled: ClassVar[bool] = True  # for every head

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    d_ff: sizes.Natural = sizes.hf()
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    n_token_types: sizes.Positive = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = super().embed(tokens, *reads)
        return ops.linear(x, "fnet.embeddings.projection", "other", c.d_model, bias=True)

    def layer(c, x: Data, *memory: Data) -> Data:
        x = c.norm(x + ops.fourier(x), "fourier.output.LayerNorm")
        return c.norm(x + parts.bert_mlp(c, x), "output.LayerNorm")

    unreachable = parts.MaskedEncoder.unreachable
