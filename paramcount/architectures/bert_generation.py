"""BERT for generation: BERT without token types or head transform, as the decoder or the encoder of a pair."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.bert import Encoder
from paramcount.flow import Data, Unreachable
from paramcount.parts.classic import biased_head, second_bias
from paramcount.parts.encoders import bert_body, embeddings, whole
from paramcount.sizes import Flag, hf


class BertGeneration(Encoder):
    """Source: arXiv:1907.12461, section 2."""

    reference: ClassVar[str] = "BertGenerationDecoder"
    base_model: ClassVar[str | None] = "BertGenerationEncoder"
    defaults: ClassVar = {"vocab_size": 50358, "d_model": 1024, "n_layers": 24, "n_heads": 16, "d_ff": 4096}

    tie_word_embeddings: Flag = hf(absent=True)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return second_bias(c, tokens, "lm_head.bias")

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def build(tokens: Data, *memory: Data) -> Data:
            x = bert_body(c, embeddings(c, tokens, None, "bert.", c.d_model), memory, "bert.")
            table = "bert.embeddings.word_embeddings.weight" if c.tie_word_embeddings else None
            return biased_head(x, c.vocab_size, "lm_head.decoder", "lm_head.bias", table) if head else x

        return whole(c, tokens, build, inputs=())
