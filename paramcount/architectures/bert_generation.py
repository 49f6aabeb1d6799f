"""BERT for generation: BERT without token types or head transform, as the decoder or the encoder of a pair."""

from paramcount.declare import Data, parts, sizes


class BertGeneration(parts.Encoder):
    """Source: arXiv:1907.12461, section 2; BertGenerationLayer of the reference."""

    reference = "BertGenerationDecoder"
    model_types = ("bert-generation",)
    base_model = "BertGenerationEncoder"
    head_names = ("", "", "lm_head.decoder", "lm_head.bias")

    tie_word_embeddings: sizes.Flag = sizes.hf()

    def head(c, x: Data) -> Data:
        table = "bert.embeddings.word_embeddings.weight" if c.tie_word_embeddings else None
        return parts.biased_head(x, c.vocab_size, *c.head_names[2:], table)
