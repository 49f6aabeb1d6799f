"""BigBird: BERT for long texts, whose layers look at a window, at the ends and at random blocks.

Its pooler is there for every head.
"""

from math import sqrt

from paramcount.architectures.bert import Bert
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def two_segments(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The class itself tells the question from its text."""
    if c["n_token_types"] < 2:
        raise ParamcountError(
            f"= {c['n_token_types']}, but the class uses two token types", where="type_vocab_size", expected="2 or more"
        )


def pooled(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    return not sizes.class_ends("ForQuestionAnswering")(js, c)


class BigBird(Bert):
    """Source: arXiv:2007.14062, section 2; BigBirdLayer of the reference: full attention in texts of at most
    (5 + 2 · num_random_blocks) · block_size tokens.
    """

    reference = "BigBirdForMaskedLM"
    task_heads = parts.ROBERTA | {
        "ForPreTraining": parts.PRE_TRAINING,
        "ForQuestionAnswering": parts.TaskHead(parts.task_heads.classify_bigbird_span, {}, (two_segments,)),
    }
    unused_keys = ("block_size", "num_random_blocks")
    equivalent_classes = ("BigBirdForCausalLM",)
    conditions = (
        sizes.memory_needs_a_decoder,
        sizes.padding_inside(0),
        sizes.one_of("attention_type", ("block_sparse", "original_full"), absent="block_sparse"),
    )
    pooler = "pooler"

    qkv_bias: sizes.Flag = sizes.hf("use_bias")
    pooled: sizes.Flag = sizes.derived(pooled)

    embedding_scale = sizes.setting(
        default=lambda js, c: sqrt(c.d_model) if js.get("rescale_embeddings", False) else 1.0
    )

    def embed(c, tokens: Data, *reads: Data) -> Data:
        names, (segments,) = "bert.embeddings.", reads
        x = ops.lookup(tokens, names + "word_embeddings.weight", "embedding", c.vocab_size, c.d_model)
        x = ops.scale_by(x, c.embedding_scale)
        x = x + ops.lookup(
            segments, names + "token_type_embeddings.weight", "other_embedding", c.n_token_types, c.d_model
        )
        name = names + "position_embeddings.weight"
        x = x + ops.lookup_position(tokens, name, c.n_positions, c.d_model)
        return c.norm(x, names + "LayerNorm")

    def layer(c, x: Data, *memory: Data) -> Data:
        return parts.encoders.post_norm_layer(c, x, *memory, bias=c.qkv_bias)
