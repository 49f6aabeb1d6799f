"""RoFormer: BERT with rotary positions instead of learned ones.

Their sines are a frozen table that all layers read.
"""

from paramcount.flow import Data, Unreachable, linear, lookup, rope_from
from paramcount.parts import task_heads as heads
from paramcount.parts.classic import second_bias
from paramcount.parts.encoders import BERT_HEAD, Encoder, embed_tokens, masked_head, post_norm_layer
from paramcount.parts.tasks import LABELS, OF_D_MODEL, ROBERTA, SPAN, TaskHead, summarised
from paramcount.sizes import Flag, Positive, derived, equal_to, hf
from paramcount.sizes.rules import check_projection, check_rotated_in_pairs


class RoFormer(Encoder):
    """Source: arXiv:2104.09864, section 3; RoFormerLayer of the reference."""

    reference = "RoFormerForMaskedLM"
    task_heads = ROBERTA | {
        "ForMultipleChoice": TaskHead(
            heads.summarise_then("classifier", lambda c: 1), LABELS | summarised(projected=False), OF_D_MODEL
        ),
        "ForQuestionAnswering": SPAN,
    }
    equivalent_classes = ("RoFormerForCausalLM",)
    prefix = "roformer."
    rotated = "d_head"

    d_embedding: Positive = hf(absent=equal_to("d_model"), null=equal_to("d_model"))
    embeddings_projected: Flag = derived(lambda js, c: c["d_embedding"] != c["d_model"])
    n_token_types: Positive = hf()
    values_rotated: Flag = hf("rotary_value")
    tie_word_embeddings: Flag = hf()

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return second_bias(c, tokens, "cls.predictions.bias")

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = embed_tokens(c, tokens, reads[0], c.d_embedding, has_positions=False)
        x = c.norm(x, "roformer.embeddings.LayerNorm")
        return linear(x, "roformer.embeddings_project", "other", c.d_model, bias=True) if c.embeddings_projected else x

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        name = "roformer.encoder.embed_positions.weight"
        return (lookup(tokens, name, "position", c.n_positions, c.d_head, index="positions"),)

    def layer(c, x: Data, sinusoids: Data, *memory: Data) -> Data:
        def turn(q: Data, k: Data, v: Data) -> tuple[Data, Data, Data]:
            q, k = rope_from(q, sinusoids), rope_from(k, sinusoids)
            return q, k, rope_from(v, sinusoids) if c.values_rotated else v

        return post_norm_layer(c, x, *memory, turn=turn)

    def head(c, x: Data) -> Data:
        return masked_head(c, x, BERT_HEAD, c.d_embedding, c.activation)

    def check(c) -> None:
        super().check()
        check_rotated_in_pairs(c, "d_head")
        check_projection(c)
