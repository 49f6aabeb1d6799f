"""RoBERTa, XLM-RoBERTa, CamemBERT, data2vec: BERT with positions counted from the padding token's id + 1."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.bert import Bert
from paramcount.flow import Data, Unreachable
from paramcount.parts.classic import second_bias
from paramcount.parts.encoders import ROBERTA_HEAD, masked_head
from paramcount.sizes import Condition, Flag, class_ends, derived
from paramcount.sizes.conditions import memory_needs_a_decoder, padding_inside
from paramcount.sizes.setting_fields import setting


class Roberta(Bert):
    """Source: arXiv:1907.11692, section 2.2; the table of places: modeling_roberta.py of the reference."""

    reference: ClassVar[str] = "RobertaForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("RobertaForCausalLM",)
    conditions: ClassVar[tuple[Condition, ...]] = (memory_needs_a_decoder, padding_inside(1, places=2))
    prefix: ClassVar[str] = "roberta."
    defaults: ClassVar = {"vocab_size": 50265}

    pooled: Flag = derived(class_ends("Model", "ForMultipleChoice"))
    first_position: ClassVar = setting(default=lambda js, c: js.get("pad_token_id", 1) + 1)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return second_bias(c, tokens, "lm_head.bias")

    def head(c, x: Data) -> Data:
        return masked_head(c, x, ROBERTA_HEAD, c.d_model, "gelu")


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
    prefix: ClassVar[str] = "data2vec_text."
    defaults: ClassVar = {}
