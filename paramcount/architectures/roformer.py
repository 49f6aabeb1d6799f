"""RoFormer: BERT with rotary positions instead of learned ones.

Their sines are a frozen table that all layers read.
"""

from paramcount.declare import Data, ops, parts, sizes


class RoFormer(parts.NarrowEncoder, parts.Encoder):
    """Source: arXiv:2104.09864, section 3; RoFormerLayer of the reference."""

    reference = "RoFormerForMaskedLM"
    task_heads = parts.ROBERTA | {
        "ForMultipleChoice": parts.TaskHead(
            parts.task_heads.summarise_then("classifier", 1),
            parts.LABELS | parts.summarised(projected=False),
            parts.OF_D_MODEL,
        ),
        "ForQuestionAnswering": parts.SPAN,
    }
    equivalent_classes = ("RoFormerForCausalLM",)
    prefix = "roformer."
    rotated = "d_head"
    has_positions = False

    d_embedding: sizes.Positive = sizes.hf(absent=sizes.equal_to("d_model"), null=sizes.equal_to("d_model"))
    values_rotated: sizes.Flag = sizes.hf("rotary_value")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        name = "roformer.encoder.embed_positions.weight"
        return (ops.lookup_position(tokens, name, c.n_positions, c.d_head),)

    def layer(c, x: Data, sinusoids: Data, *memory: Data) -> Data:
        def turn(q: Data, k: Data, v: Data) -> tuple[Data, Data, Data]:
            q, k = ops.rope_from(q, sinusoids), ops.rope_from(k, sinusoids)
            return q, k, ops.rope_from(v, sinusoids) if c.values_rotated else v

        return parts.encoders.post_norm_layer(c, x, *memory, turn=turn)

    def check(c) -> None:
        super().check()
        sizes.check_rotated_in_pairs(c, "d_head")
