"""BERT: a post-norm encoder that sums token, segment and position embeddings.

Its LM head is tied to the token embedding.
"""

from __future__ import annotations

from typing import ClassVar

from paramcount.flow import Data, Unreachable
from paramcount.parts.classic import second_bias
from paramcount.parts.encoders import masked_lm
from paramcount.sizes import Condition, Flag, Positive, Sizes, class_ends, d_model_per_head, derived, hf
from paramcount.sizes.conditions import memory_needs_a_decoder, padding_inside
from paramcount.sizes.rules import check_heads_fill

# What the pooler stands under; a class named first in `architectures` decides whether it is there.
POOLED = ("Model", "ForMultipleChoice", "ForNextSentencePrediction", "ForPreTraining", "ForSequenceClassification")


class Encoder(Sizes):
    """What encoders of the BERT kind share.

    With is_decoder they look back only, and may look at another encoder's output.
    """

    conditions: ClassVar[tuple[Condition, ...]] = (memory_needs_a_decoder, padding_inside(0))

    vocab_size: Positive = hf(absent=30522)
    d_model: Positive = hf(absent=768)
    n_layers: Positive = hf(absent=12)
    n_heads: Positive = hf(absent=12)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=3072)
    n_positions: Positive = hf("max_position_embeddings", absent=512)
    is_decoder: Flag = hf(absent=False)
    cross_attention: Flag = hf(absent=False)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        raise NotImplementedError

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)

    def check(c) -> None:
        check_heads_fill(c)


class Bert(Encoder):
    """Source: arXiv:1810.04805, section 3."""

    reference: ClassVar[str] = "BertForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("BertLMHeadModel",)

    n_token_types: Positive = hf(absent=2)
    pooled: Flag = derived(class_ends(*POOLED))
    tie_word_embeddings: Flag = hf(absent=True)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return second_bias(c, tokens, "cls.predictions.bias")

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return masked_lm(c, tokens, head, "bert.")
