"""RoBERTa with its norms before attention and MLP, and one more behind the last layer."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.roberta import Roberta
from paramcount.flow import Data
from paramcount.parts.encoders import ROBERTA_HEAD, masked_lm


class RobertaPreLayerNorm(Roberta):
    """Source: modeling_roberta_prelayernorm.py of the reference."""

    reference: ClassVar[str] = "RobertaPreLayerNormForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("RobertaPreLayerNormForCausalLM",)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        norms = ("LayerNorm", "intermediate.LayerNorm")
        return masked_lm(
            c, tokens, head, "roberta_prelayernorm.", ROBERTA_HEAD, norms=norms, before=True, last_norm="LayerNorm"
        )
