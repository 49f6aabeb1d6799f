"""BART: an encoder-decoder with learned positions, post-norm, one token embedding for encoder, decoder and LM head."""

from typing import ClassVar

from paramcount.parts.seq2seq import Seq2Seq, Stacks, TiedDecoder, post_norm_layer, scale_embedding
from paramcount.parts.tasks import BART, END, OF_BART, labels
from paramcount.sizes.conditions import not_null
from paramcount.sizes.fields import TaskHeads


class BartStacks(Stacks):
    """Two more rows stand before the positions that a text reaches."""

    layer = post_norm_layer
    position_offset = 2
    norms_embedding = True


ASKED = not_null("activation_function", "activation_dropout", "dropout", "init_std")


class Bart(BartStacks, Seq2Seq):
    """Source: arXiv:1910.13461, section 2.1; order of operations: BartModel."""

    reference = "BartForConditionalGeneration"
    task_heads: ClassVar[TaskHeads] = BART | {"ForSequenceClassification": END._replace(fields=labels(OF_BART))}
    conditions = (*Seq2Seq.conditions, ASKED)


class BartDecoder(BartStacks, TiedDecoder):
    """Source: arXiv:1910.13461, section 2.1; order of operations: BartDecoder."""

    reference = "BartForCausalLM"
    model_types = ("bart.BartForCausalLM",)
    conditions = (*TiedDecoder.conditions, ASKED)


class PLBart(Bart):
    """BART for programs, which it equals but for its sizes. Source: arXiv:2103.06333, section 2."""

    reference = "PLBartForConditionalGeneration"
    model_types = ("plbart",)
    task_heads = {"ForSequenceClassification": END}

    embedding_scale = scale_embedding(default=True)


class PLBartDecoder(BartDecoder):
    """Source: arXiv:2103.06333, section 2."""

    reference = "PLBartForCausalLM"
    model_types = ("plbart.PLBartForCausalLM",)

    embedding_scale = scale_embedding(default=True)
