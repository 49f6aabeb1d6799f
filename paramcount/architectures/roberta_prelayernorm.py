"""RoBERTa with its norms before attention and MLP, and one more behind the last layer."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.roberta import Roberta
from paramcount.flow import Data
from paramcount.parts.encoders import pre_norm_layer


class RobertaPreLayerNorm(Roberta):
    """Source: modeling_roberta_prelayernorm.py of the reference, RobertaPreLayerNormLayer."""

    reference: ClassVar[str] = "RobertaPreLayerNormForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("RobertaPreLayerNormForCausalLM",)

    prefix: ClassVar[str] = "roberta_prelayernorm."
    last_norm: ClassVar[str] = "LayerNorm"

    def layer(c, x: Data, *memory: Data) -> Data:
        return pre_norm_layer(c, x, memory, ("LayerNorm", "intermediate.LayerNorm"))
