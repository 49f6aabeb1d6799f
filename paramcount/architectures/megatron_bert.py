"""Megatron-BERT: BERT with its norms before attention and MLP and behind the last layer, none behind the tables."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.bert import Bert
from paramcount.flow import Data
from paramcount.parts.encoders import embeddings, masked_lm


class MegatronBert(Bert):
    """Source: arXiv:1909.08053, section 5.3."""

    reference: ClassVar[str] = "MegatronBertForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("MegatronBertForCausalLM",)
    defaults: ClassVar = {"vocab_size": 29056, "d_model": 1024, "n_layers": 24, "n_heads": 16, "d_ff": 4096}

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return masked_lm(
            c,
            tokens,
            head,
            "bert.",
            embed=lambda tokens, segments: embeddings(c, tokens, segments, "bert.", c.d_model, normed=False),
            norms=("ln", "ln"),
            before=True,
            last_norm="encoder.ln",
        )
