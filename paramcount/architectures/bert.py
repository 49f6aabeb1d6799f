"""BERT: a post-norm encoder that sums token, segment and position embeddings.

Its LM head is tied to the token embedding.
"""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes

# What the pooler stands under; a class named first in `architectures` decides whether it is there.
POOLED = ("Model", "ForMultipleChoice", "ForNextSentencePrediction", "ForPreTraining", "ForSequenceClassification")


class Bert(parts.Encoder):
    """Source: arXiv:1810.04805, section 3; BertLayer of the reference."""

    reference = "BertForMaskedLM"
    gguf = "bert"
    task_heads: ClassVar[sizes.TaskHeads] = "BERT_SENTENCES"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("BertLMHeadModel",)

    n_token_types: sizes.Positive = sizes.hf()
    pooled: sizes.Flag = sizes.derived(sizes.class_ends(*POOLED))
    tie_word_embeddings: sizes.Flag = sizes.hf()


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
        return parts.embed_tokens(c, tokens, reads[0], c.d_model)

    def layer(c, x: Data, *memory: Data) -> Data:
        return parts.encoders.pre_norm_layer(c, x, memory, ("ln", "ln"))


class Ernie(Bert):
    """ERNIE 1 to 3: BERT, in some releases with a table of tasks beside the other three.

    Source: modeling_ernie.py of the reference, ErnieEmbeddings.
    """

    reference = "ErnieForMaskedLM"
    model_types = ("ernie",)
    task_heads = "BERT_SENTENCES"
    equivalent_classes = ("ErnieForCausalLM",)
    prefix = "ernie."

    n_task_types: sizes.Positive = sizes.hf("task_type_vocab_size")
    task_ids: sizes.Flag = sizes.hf("use_task_id")

    def inputs(c) -> dict[str, int | ops.Unknown | None]:
        return {"segments": 0, "tasks": 0} if c.task_ids else {"segments": 0}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = parts.embed_tokens(c, tokens, reads[0], c.d_model)
        for tasks in reads[1:]:
            name = "ernie.embeddings.task_type_embeddings.weight"
            x = x + ops.lookup(tasks, name, "other_embedding", c.n_task_types, c.d_model)
        return c.norm(x, "ernie.embeddings.LayerNorm")
