"""RoBERTa with its norms before attention and MLP, and one more behind the last layer."""

from paramcount.architectures.roberta import Roberta
from paramcount.flow import Data
from paramcount.parts.encoders import pre_norm_layer


class RobertaPreLayerNorm(Roberta):
    """Source: modeling_roberta_prelayernorm.py of the reference, RobertaPreLayerNormLayer."""

    reference = "RobertaPreLayerNormForMaskedLM"
    equivalent_classes = ("RobertaPreLayerNormForCausalLM",)

    prefix = "roberta_prelayernorm."
    last_norm = "LayerNorm"

    def layer(c, x: Data, *memory: Data) -> Data:
        return pre_norm_layer(c, x, memory, ("LayerNorm", "intermediate.LayerNorm"))
