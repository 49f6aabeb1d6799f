"""ELECTRA: BERT with embeddings that may be narrower than its layers.

Counted with the generator's head; the discriminator has none.
"""

from paramcount.flow import Data, linear
from paramcount.parts import task_heads as heads
from paramcount.parts.encoders import Encoder, embed_tokens, masked_head, post_norm_layer
from paramcount.parts.tasks import OF_D_MODEL, ROBERTA, SUMMARISED, TaskHead
from paramcount.sizes import Flag, Positive, derived, hf
from paramcount.sizes.rules import check_projection

HEAD = ("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head", "generator_lm_head.bias")


class Electra(Encoder):
    """Source: arXiv:2003.10555, section 2; ElectraLayer of the reference."""

    reference = "ElectraForMaskedLM"
    task_heads = ROBERTA | {
        "ForMultipleChoice": TaskHead(heads.summarise_then("classifier", lambda c: 1), SUMMARISED, OF_D_MODEL),
        "ForPreTraining": TaskHead(heads.detect_replaced, {}),
    }
    equivalent_classes = ("ElectraForCausalLM",)
    prefix = "electra."

    d_embedding: Positive = hf()
    embeddings_projected: Flag = derived(lambda js, c: c["d_embedding"] != c["d_model"])
    n_token_types: Positive = hf()
    tie_word_embeddings: Flag = hf()

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = c.norm(embed_tokens(c, tokens, reads[0], c.d_embedding), "electra.embeddings.LayerNorm")
        return linear(x, "electra.embeddings_project", "other", c.d_model, bias=True) if c.embeddings_projected else x

    def layer(c, x: Data, *memory: Data) -> Data:
        return post_norm_layer(c, x, *memory)

    def head(c, x: Data) -> Data:
        return masked_head(c, x, HEAD, c.d_embedding, "gelu")

    def check(c) -> None:
        super().check()
        check_projection(c)
