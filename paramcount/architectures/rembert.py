"""RemBERT: narrow input tables, a wide output head that is never tied to them."""

from paramcount.declare import Data, ops, parts, sizes

HEAD = ("cls.predictions.dense", "cls.predictions.LayerNorm", "cls.predictions.decoder", "")


class RemBert(parts.Encoder):
    """Source: arXiv:2010.12821; modeling_rembert.py of the reference, RemBertLayer."""

    reference = "RemBertForMaskedLM"
    task_heads = "BERT"
    equivalent_classes = ("RemBertForCausalLM",)
    prefix = "rembert."

    d_embedding: sizes.Positive = sizes.hf("input_embedding_size")
    d_output: sizes.Positive = sizes.hf("output_embedding_size")
    n_token_types: sizes.Positive = sizes.hf()
    pooled: sizes.Flag = sizes.derived(sizes.class_ends("Model", "ForMultipleChoice", "ForSequenceClassification"))

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = c.norm(parts.embed_tokens(c, tokens, reads[0], c.d_embedding), "rembert.embeddings.LayerNorm")
        return ops.linear(x, "rembert.encoder.embedding_hidden_mapping_in", "other", c.d_model, bias=True)

    def head(c, x: Data) -> Data:
        return parts.masked_head(c, x, HEAD, c.d_output, c.activation)
