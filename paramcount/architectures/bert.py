"""BERT: a post-norm encoder that sums token, segment and position embeddings.

Its LM head is tied to the token embedding.
"""

from typing import ClassVar

from paramcount.flow import Data, Unknown, Unreachable, lookup
from paramcount.parts.classic import second_bias
from paramcount.parts.encoders import Encoder, embed_tokens, post_norm_layer, pre_norm_layer
from paramcount.sizes import Flag, Positive, class_ends, derived, hf
from paramcount.sizes.fields import TaskHeads

# What the pooler stands under; a class named first in `architectures` decides whether it is there.
POOLED = ("Model", "ForMultipleChoice", "ForNextSentencePrediction", "ForPreTraining", "ForSequenceClassification")


class Bert(Encoder):
    """Source: arXiv:1810.04805, section 3; BertLayer of the reference."""

    reference = "BertForMaskedLM"
    gguf = "bert"
    task_heads: ClassVar[TaskHeads] = "BERT_SENTENCES"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("BertLMHeadModel",)

    n_token_types: Positive = hf()
    pooled: Flag = derived(class_ends(*POOLED))
    tie_word_embeddings: Flag = hf()

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return second_bias(c, tokens, "cls.predictions.bias")

    def layer(c, x: Data, *memory: Data) -> Data:
        return post_norm_layer(c, x, *memory)


class MegatronBert(Bert):
    """Megatron-BERT: BERT with its norms before attention and MLP and behind the last layer, none behind the tables.

    Source: arXiv:1909.08053, section 5.3; MegatronBertLayer of the reference.
    """

    reference = "MegatronBertForMaskedLM"
    model_types = ("megatron-bert",)
    task_heads = "BERT_SENTENCES"
    equivalent_classes = ("MegatronBertForCausalLM",)
    last_norm = "encoder.ln"

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return embed_tokens(c, tokens, reads[0], c.d_model)

    def layer(c, x: Data, *memory: Data) -> Data:
        return pre_norm_layer(c, x, memory, ("ln", "ln"))


class Ernie(Bert):
    """ERNIE 1 to 3: BERT, in some releases with a table of tasks beside the other three.

    Source: modeling_ernie.py of the reference, ErnieEmbeddings.
    """

    reference = "ErnieForMaskedLM"
    model_types = ("ernie",)
    task_heads = "BERT_SENTENCES"
    equivalent_classes = ("ErnieForCausalLM",)
    prefix = "ernie."

    n_task_types: Positive = hf("task_type_vocab_size")
    task_ids: Flag = hf("use_task_id")

    def inputs(c) -> dict[str, int | Unknown | None]:
        return {"segments": 0, "tasks": 0} if c.task_ids else {"segments": 0}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = embed_tokens(c, tokens, reads[0], c.d_model)
        for tasks in reads[1:]:
            name = "ernie.embeddings.task_type_embeddings.weight"
            x = x + lookup(tasks, name, "other_embedding", c.n_task_types, c.d_model)
        return c.norm(x, "ernie.embeddings.LayerNorm")
