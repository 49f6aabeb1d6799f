"""RoBERTa, XLM-RoBERTa, CamemBERT, data2vec: BERT with positions counted from the padding token's id + 1."""

from paramcount.architectures.bert import Bert
from paramcount.declare import Data, parts, sizes


class Roberta(parts.LikeRoberta, Bert):
    """Source: arXiv:1907.11692, section 2.2; the table of places: modeling_roberta.py of the reference."""

    reference = "RobertaForMaskedLM"
    gguf = "bert"
    task_heads = "ROBERTA"
    gguf_padding_rows = 2
    equivalent_classes = ("RobertaForCausalLM",)
    conditions = (sizes.memory_needs_a_decoder, sizes.padding_inside(1, places=2))
    prefix = "roberta."

    pooled: sizes.Flag = sizes.derived(sizes.class_ends("Model", "ForMultipleChoice"))


class XLMRoberta(Roberta):
    """Source: arXiv:1911.02116, section 3."""

    reference = "XLMRobertaForMaskedLM"
    model_types = ("xlm-roberta",)
    gguf = "bert"
    task_heads = "ROBERTA"
    gguf_padding_rows = 2
    equivalent_classes = ("XLMRobertaForCausalLM",)


class Camembert(Roberta):
    """Source: arXiv:1911.03894, section 4."""

    reference = "CamembertForMaskedLM"
    model_types = ("camembert",)
    gguf = "bert"
    task_heads = "ROBERTA"
    gguf_padding_rows = 2
    equivalent_classes = ("CamembertForCausalLM",)


class Data2VecText(Roberta):
    """Source: modeling_data2vec_text.py of the reference."""

    reference = "Data2VecTextForMaskedLM"
    model_types = ("data2vec-text",)
    task_heads = "ROBERTA"
    equivalent_classes = ("Data2VecTextForCausalLM",)
    prefix = "data2vec_text."


class RobertaPreLayerNorm(Roberta):
    """RoBERTa with its norms before attention and MLP, and one more behind the last layer.

    Source: modeling_roberta_prelayernorm.py of the reference, RobertaPreLayerNormLayer.
    """

    reference = "RobertaPreLayerNormForMaskedLM"
    model_types = ("roberta-prelayernorm",)
    task_heads = "ROBERTA"
    equivalent_classes = ("RobertaPreLayerNormForCausalLM",)

    prefix = "roberta_prelayernorm."
    last_norm = "LayerNorm"

    def layer(c, x: Data, *memory: Data) -> Data:
        return parts.encoders.pre_norm_layer(c, x, memory, ("LayerNorm", "intermediate.LayerNorm"))


class XLMRobertaXL(Roberta):
    """XLM-RoBERTa XL and XXL: norms before attention and MLP and behind the last layer, none behind the tables.

    Source: arXiv:2105.00572, section 2; XLMRobertaXLLayer of the reference.
    """

    reference = "XLMRobertaXLForMaskedLM"
    model_types = ("xlm-roberta-xl",)
    task_heads = "ROBERTA"
    equivalent_classes = ("XLMRobertaXLForCausalLM",)
    last_norm = "encoder.LayerNorm"

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return parts.embed_tokens(c, tokens, reads[0], c.d_model)

    def layer(c, x: Data, *memory: Data) -> Data:
        return parts.encoders.pre_norm_layer(c, x, memory, ("self_attn_layer_norm", "LayerNorm"))
