"""RemBERT: narrow input tables, a wide output head that is never tied to them."""

from paramcount.flow import Data, linear
from paramcount.parts.encoders import Encoder, embed_tokens, masked_head, post_norm_layer
from paramcount.sizes import Flag, Positive, class_ends, derived, hf

HEAD = ("cls.predictions.dense", "cls.predictions.LayerNorm", "cls.predictions.decoder", "")


class RemBert(Encoder):
    """Source: arXiv:2010.12821; modeling_rembert.py of the reference, RemBertLayer."""

    reference = "RemBertForMaskedLM"
    task_heads = "BERT"
    equivalent_classes = ("RemBertForCausalLM",)
    prefix = "rembert."

    d_embedding: Positive = hf("input_embedding_size")
    d_output: Positive = hf("output_embedding_size")
    n_token_types: Positive = hf()
    pooled: Flag = derived(class_ends("Model", "ForMultipleChoice", "ForSequenceClassification"))

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = c.norm(embed_tokens(c, tokens, reads[0], c.d_embedding), "rembert.embeddings.LayerNorm")
        return linear(x, "rembert.encoder.embedding_hidden_mapping_in", "other", c.d_model, bias=True)

    def layer(c, x: Data, *memory: Data) -> Data:
        return post_norm_layer(c, x, *memory)

    def head(c, x: Data) -> Data:
        return masked_head(c, x, HEAD, c.d_output, c.activation)
