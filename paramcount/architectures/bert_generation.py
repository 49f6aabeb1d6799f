"""BERT for generation: BERT without token types or head transform, as the decoder or the encoder of a pair."""

from paramcount.declare import Data, ops, parts, sizes


class BertGeneration(parts.Encoder):
    """Source: arXiv:1907.12461, section 2; BertGenerationLayer of the reference."""

    reference = "BertGenerationDecoder"
    model_types = ("bert-generation",)
    base_model = "BertGenerationEncoder"

    tie_word_embeddings: sizes.Flag = sizes.hf()

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        return parts.second_bias(c, tokens, "lm_head.bias")

    def inputs(c) -> dict[str, int | ops.Unknown | None]:
        return {}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return c.norm(parts.embed_tokens(c, tokens, None, c.d_model), "bert.embeddings.LayerNorm")

    def layer(c, x: Data, *memory: Data) -> Data:
        return parts.encoders.post_norm_layer(c, x, *memory)

    def head(c, x: Data) -> Data:
        table = "bert.embeddings.word_embeddings.weight" if c.tie_word_embeddings else None
        return parts.biased_head(x, c.vocab_size, "lm_head.decoder", "lm_head.bias", table)
