"""Megatron-BERT: BERT with its norms before attention and MLP and behind the last layer, none behind the tables."""

from paramcount.architectures.bert import Bert
from paramcount.flow import Data
from paramcount.parts.encoders import embed_tokens, pre_norm_layer


class MegatronBert(Bert):
    """Source: arXiv:1909.08053, section 5.3; MegatronBertLayer of the reference."""

    reference = "MegatronBertForMaskedLM"
    equivalent_classes = ("MegatronBertForCausalLM",)
    last_norm = "encoder.ln"
    defaults = {"vocab_size": 29056, "d_model": 1024, "n_layers": 24, "n_heads": 16, "d_ff": 4096}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return embed_tokens(c, tokens, reads[0], c.d_model)

    def layer(c, x: Data, *memory: Data) -> Data:
        return pre_norm_layer(c, x, memory, ("ln", "ln"))
