"""RoBERTa, XLM-RoBERTa, CamemBERT, data2vec: BERT with places counted from behind the padding token."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.bert import Bert
from paramcount.flow import Data, Unreachable
from paramcount.parts.classic import second_bias
from paramcount.parts.encoders import ROBERTA_HEAD, masked_lm
from paramcount.sizes import Condition, Flag, class_ends, derived
from paramcount.sizes.conditions import memory_needs_a_decoder, padding_inside


class Roberta(Bert):
    """Source: arXiv:1907.11692, section 2.2; the table of places: modeling_roberta.py of the reference."""

    reference: ClassVar[str] = "RobertaForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("RobertaForCausalLM",)
    conditions: ClassVar[tuple[Condition, ...]] = (memory_needs_a_decoder, padding_inside(1, places=2))
    defaults: ClassVar = {"vocab_size": 50265}

    pooled: Flag = derived(class_ends("Model", "ForMultipleChoice"))

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return second_bias(c, tokens, "lm_head.bias")

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return masked_lm(c, tokens, head, "roberta.", ROBERTA_HEAD)


class XLMRoberta(Roberta):
    """Source: arXiv:1911.02116, section 3."""

    reference: ClassVar[str] = "XLMRobertaForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("XLMRobertaForCausalLM",)
    defaults: ClassVar = {}


class Camembert(Roberta):
    """Source: arXiv:1911.03894, section 4."""

    reference: ClassVar[str] = "CamembertForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("CamembertForCausalLM",)
    defaults: ClassVar = {}


class Data2VecText(Roberta):
    """Source: modeling_data2vec_text.py of the reference."""

    reference: ClassVar[str] = "Data2VecTextForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("Data2VecTextForCausalLM",)
    defaults: ClassVar = {}

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return masked_lm(c, tokens, head, "data2vec_text.", ROBERTA_HEAD)
