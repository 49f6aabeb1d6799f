"""BigBird: BERT for long texts, whose layers look at a window, at the ends and at random blocks.

Its pooler is there for every head.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.bert import Bert
from paramcount.flow import Data
from paramcount.parts.encoders import masked_lm
from paramcount.sizes import Condition, Flag, class_ends, derived, hf
from paramcount.sizes.conditions import memory_needs_a_decoder, one_of, padding_inside


def pooled(js: Mapping[str, Any], c: Mapping[str, Any]) -> bool:
    return not class_ends("ForQuestionAnswering")(js, c)


class BigBird(Bert):
    """Source: arXiv:2007.14062, section 2."""

    reference: ClassVar[str] = "BigBirdForMaskedLM"
    unused_keys: ClassVar[tuple[str, ...]] = ("block_size", "num_random_blocks")
    equivalent_classes: ClassVar[tuple[str, ...]] = ("BigBirdForCausalLM",)
    conditions: ClassVar[tuple[Condition, ...]] = (
        memory_needs_a_decoder,
        padding_inside(0),
        one_of("attention_type", ("block_sparse", "original_full"), absent="block_sparse"),
    )
    defaults: ClassVar = {"vocab_size": 50358, "n_positions": 4096}

    qkv_bias: Flag = hf("use_bias", absent=True)
    pooled: Flag = derived(pooled)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return masked_lm(c, tokens, head, "bert.", qkv_bias=c.qkv_bias, pooler="pooler")
