"""BERT: a post-norm encoder that sums token, segment and position embeddings.

Its LM head is tied to the token embedding.
"""

from typing import ClassVar

from paramcount.flow import Data, Unreachable
from paramcount.parts.classic import second_bias
from paramcount.parts.encoders import Encoder, post_norm_layer
from paramcount.sizes import Flag, Positive, class_ends, derived, hf

# What the pooler stands under; a class named first in `architectures` decides whether it is there.
POOLED = ("Model", "ForMultipleChoice", "ForNextSentencePrediction", "ForPreTraining", "ForSequenceClassification")


class Bert(Encoder):
    """Source: arXiv:1810.04805, section 3; BertLayer of the reference."""

    reference = "BertForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("BertLMHeadModel",)

    n_token_types: Positive = hf(absent=2)
    pooled: Flag = derived(class_ends(*POOLED))
    tie_word_embeddings: Flag = hf(absent=True)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return second_bias(c, tokens, "cls.predictions.bias")

    def layer(c, x: Data, *memory: Data) -> Data:
        return post_norm_layer(c, x, *memory)
