"""ELECTRA: BERT with embeddings that may be narrower than its layers.

Counted with the generator's head; the discriminator has none.
"""

from paramcount.declare import parts, sizes

HEAD = ("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head", "generator_lm_head.bias")


class Electra(parts.NarrowEncoder, parts.Encoder):
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
    head_names = HEAD
    head_activation = "gelu"

    tie_word_embeddings: sizes.Flag = sizes.hf()

    unreachable = sizes.Sizes.unreachable
