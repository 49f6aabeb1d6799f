"""XLM-RoBERTa XL and XXL: norms before attention and MLP and behind the last layer, none behind the tables."""

from paramcount.architectures.roberta import Roberta
from paramcount.flow import Data
from paramcount.parts.encoders import embed_tokens, pre_norm_layer
from paramcount.sizes import setting


class XLMRobertaXL(Roberta):
    """Source: arXiv:2105.00572, section 2; XLMRobertaXLLayer of the reference."""

    reference = "XLMRobertaXLForMaskedLM"
    equivalent_classes = ("XLMRobertaXLForCausalLM",)
    last_norm = "encoder.LayerNorm"
    defaults = {
        "vocab_size": 250880,
        "d_model": 2560,
        "n_layers": 36,
        "n_heads": 32,
        "d_ff": 10240,
        "n_positions": 514,
        "n_token_types": 1,
    }

    norm_eps = setting("layer_norm_eps", default=1e-5)

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return embed_tokens(c, tokens, reads[0], c.d_model)

    def layer(c, x: Data, *memory: Data) -> Data:
        return pre_norm_layer(c, x, memory, ("self_attn_layer_norm", "LayerNorm"))
