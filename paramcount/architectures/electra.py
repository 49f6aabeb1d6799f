"""ELECTRA: BERT with embeddings that may be narrower than its layers.

Counted with the generator's head; the discriminator has none.
"""

from paramcount.declare import Data, ops, parts, sizes

HEAD = ("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head", "generator_lm_head.bias")


class Electra(parts.Encoder):
    """Source: arXiv:2003.10555, section 2; ElectraLayer of the reference."""

    reference = "ElectraForMaskedLM"
    task_heads = parts.ROBERTA | {
        "ForMultipleChoice": parts.TaskHead(
            parts.task_heads.summarise_then("classifier", 1), parts.SUMMARISED, parts.OF_D_MODEL
        ),
        "ForPreTraining": parts.TaskHead(parts.detect_replaced(activation="gelu"), {}),
    }
    equivalent_classes = ("ElectraForCausalLM",)
    prefix = "electra."

    d_embedding: sizes.Positive = sizes.hf()
    embeddings_projected: sizes.Flag = sizes.derived(lambda js, c: c["d_embedding"] != c["d_model"])
    n_token_types: sizes.Positive = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = c.norm(parts.embed_tokens(c, tokens, reads[0], c.d_embedding), "electra.embeddings.LayerNorm")
        return (
            ops.linear(x, "electra.embeddings_project", "other", c.d_model, bias=True) if c.embeddings_projected else x
        )

    def layer(c, x: Data, *memory: Data) -> Data:
        return parts.encoders.post_norm_layer(c, x, *memory)

    def head(c, x: Data) -> Data:
        return parts.masked_head(c, x, HEAD, c.d_embedding, "gelu")

    def check(c) -> None:
        super().check()
        sizes.check_projection(c)
