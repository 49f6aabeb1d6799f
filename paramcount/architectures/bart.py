"""BART: an encoder-decoder with learned positions, post-norm, one token embedding for encoder, decoder and LM head."""

from typing import ClassVar

from paramcount.declare import parts, sizes


class BartStacks(parts.Stacks):
    """Two more rows stand before the positions that a text reaches."""

    layer = parts.seq2seq.post_norm_layer
    position_offset = 2
    norms_embedding = True


ASKED = sizes.not_null("activation_function", "activation_dropout", "dropout", "init_std")


class Bart(BartStacks, parts.Seq2Seq):
    """Source: arXiv:1910.13461, section 2.1; order of operations: BartModel."""

    reference = "BartForConditionalGeneration"
    task_heads: ClassVar[sizes.TaskHeads] = parts.BART | {
        "ForSequenceClassification": parts.END._replace(fields=parts.labels(parts.OF_BART))
    }
    conditions = (*parts.Seq2Seq.conditions, ASKED)


class BartDecoder(BartStacks, parts.TiedDecoder):
    """Source: arXiv:1910.13461, section 2.1; order of operations: BartDecoder."""

    reference = "BartForCausalLM"
    model_types = ("bart.BartForCausalLM",)
    conditions = (*parts.TiedDecoder.conditions, ASKED)


class PLBart(Bart):
    """BART for programs, which it equals but for its sizes. Source: arXiv:2103.06333, section 2."""

    reference = "PLBartForConditionalGeneration"
    model_types = ("plbart",)
    task_heads = {"ForSequenceClassification": parts.END}

    embedding_scale = parts.scale_embedding(default=True)


class PLBartDecoder(BartDecoder):
    """Source: arXiv:2103.06333, section 2."""

    reference = "PLBartForCausalLM"
    model_types = ("plbart.PLBartForCausalLM",)

    embedding_scale = parts.scale_embedding(default=True)
