"""BigBird: BERT for long texts, whose layers look at a window, at the ends and at random blocks.

Its pooler is there for every head.
"""

from math import sqrt

from paramcount.architectures.bert import Bert
from paramcount.errors import ParamcountError
from paramcount.flow import Data, lookup, scale_by
from paramcount.parts import task_heads as heads
from paramcount.parts.encoders import post_norm_layer
from paramcount.parts.tasks import PRE_TRAINING, ROBERTA, TaskHead
from paramcount.sizes import ConfigJson, FieldValues, Flag, class_ends, derived, hf, setting
from paramcount.sizes.conditions import memory_needs_a_decoder, one_of, padding_inside


def two_segments(js: ConfigJson, c: FieldValues) -> None:
    """The class itself tells the question from its text."""
    if c["n_token_types"] < 2:
        raise ParamcountError(
            f"= {c['n_token_types']}, but the class uses two token types", where="type_vocab_size", expected="2 or more"
        )


def pooled(js: ConfigJson, c: FieldValues) -> bool:
    return not class_ends("ForQuestionAnswering")(js, c)


class BigBird(Bert):
    """Source: arXiv:2007.14062, section 2; BigBirdLayer of the reference: full attention in texts of at most
    (5 + 2 · num_random_blocks) · block_size tokens.
    """

    reference = "BigBirdForMaskedLM"
    task_heads = ROBERTA | {
        "ForPreTraining": PRE_TRAINING,
        "ForQuestionAnswering": TaskHead(heads.classify_bigbird_span, {}, (two_segments,)),
    }
    unused_keys = ("block_size", "num_random_blocks")
    equivalent_classes = ("BigBirdForCausalLM",)
    conditions = (
        memory_needs_a_decoder,
        padding_inside(0),
        one_of("attention_type", ("block_sparse", "original_full"), absent="block_sparse"),
    )
    pooler = "pooler"

    qkv_bias: Flag = hf("use_bias")
    pooled: Flag = derived(pooled)

    activation = setting("hidden_act", default="gelu_new")
    embedding_scale = setting(default=lambda js, c: sqrt(c.d_model) if js.get("rescale_embeddings", False) else 1.0)

    def embed(c, tokens: Data, *reads: Data) -> Data:
        names, (segments,) = "bert.embeddings.", reads
        x = lookup(tokens, names + "word_embeddings.weight", "embedding", c.vocab_size, c.d_model)
        x = scale_by(x, c.embedding_scale)
        x = x + lookup(segments, names + "token_type_embeddings.weight", "other_embedding", c.n_token_types, c.d_model)
        name = names + "position_embeddings.weight"
        x = x + lookup(tokens, name, "position", c.n_positions, c.d_model, index="positions")
        return c.norm(x, names + "LayerNorm")

    def layer(c, x: Data, *memory: Data) -> Data:
        return post_norm_layer(c, x, *memory, bias=c.qkv_bias)
