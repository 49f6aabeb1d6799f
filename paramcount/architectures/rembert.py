"""RemBERT: narrow input tables, a wide output head that is never tied to them."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.bert import Encoder
from paramcount.flow import Data, linear
from paramcount.parts.encoders import embeddings, masked_lm
from paramcount.sizes import Flag, Positive, class_ends, derived, hf

HEAD = ("cls.predictions.dense", "cls.predictions.LayerNorm", "cls.predictions.decoder", "")


class RemBert(Encoder):
    """Source: arXiv:2010.12821; modeling_rembert.py of the reference."""

    reference: ClassVar[str] = "RemBertForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("RemBertForCausalLM",)
    defaults: ClassVar = {"vocab_size": 250300, "d_model": 1152, "n_layers": 32, "n_heads": 18, "d_ff": 4608}

    d_embedding: Positive = hf("input_embedding_size", absent=256)
    d_output: Positive = hf("output_embedding_size", absent=1664)
    n_token_types: Positive = hf(absent=2)
    pooled: Flag = derived(class_ends("Model", "ForMultipleChoice", "ForSequenceClassification"))

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def embed(tokens: Data, segments: Data) -> Data:
            x = embeddings(c, tokens, segments, "rembert.", c.d_embedding)
            return linear(x, "rembert.encoder.embedding_hidden_mapping_in", "other", c.d_model, bias=True)

        return masked_lm(c, tokens, head, "rembert.", HEAD, embed=embed, width=c.d_output)
