"""BigBird-Pegasus: Pegasus with learned places and an encoder that looks at a window, the ends and random blocks.

A decoder alone is never tied to its tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paramcount.declare import Data, ops, parts, sizes

MATRICES = ("self.query", "self.key", "self.value", "output")  # of the encoder
ATTENTION = sizes.one_of("attention_type", ("block_sparse", "original_full"), absent="block_sparse")


def find_longest(config: Mapping[str, Any], c: Any) -> int | None:
    """Tokens up to which the encoder attends to all of them. Source: BigBirdPegasusEncoder."""
    if config.get("attention_type", "block_sparse") != "block_sparse":
        return None
    return int((5 + 2 * config.get("num_random_blocks", 3)) * config.get("block_size", 64))


class BigBirdPegasusStacks(parts.Stacks):
    layer = parts.seq2seq.pre_norm_layer
    last_norm = "layernorm_embedding"

    activation = sizes.setting("activation_function", default="gelu_new")
    embedding_scale = parts.scale_embedding(default=True)
    longest = sizes.setting(default=find_longest)

    if TYPE_CHECKING:  # a field of the subclasses
        attention_bias: sizes.Flag

    def self_attention(c, s: parts.Stack, x: Data, *, cached: bool) -> Data:
        if cached:
            return parts.multi_head(s, x, "self_attn.", bias=c.attention_bias, mix=ops.attend_causally)

        def mix(q: Data, k: Data, v: Data) -> Data:
            return ops.weighted_sum(ops.softmax(ops.scores(q, k, longest=c.longest)), v)  # [n, n_heads, d_head]

        return parts.multi_head(s, x, "self_attn.", MATRICES, bias=c.attention_bias, mix=mix)

    def cross_attention(c, s: parts.Stack, x: Data, memory: Data) -> Data:
        return parts.multi_head(s, x, "encoder_attn.", memory=memory, bias=c.attention_bias)


class BigBirdPegasus(BigBirdPegasusStacks, parts.Seq2Seq):
    """Source: arXiv:2007.14062, section 4; modeling_bigbird_pegasus.py of the reference."""

    reference = "BigBirdPegasusForConditionalGeneration"
    task_heads = "BART"
    unused_keys = ("block_size", "num_random_blocks")
    conditions = (sizes.padding_inside(0), ATTENTION)

    attention_bias: sizes.Flag = sizes.hf("use_bias")


class BigBirdPegasusDecoder(BigBirdPegasusStacks, parts.UntiedDecoder):
    """Source: arXiv:2007.14062, section 4."""

    reference = "BigBirdPegasusForCausalLM"
    model_types = ("bigbird_pegasus.BigBirdPegasusForCausalLM",)
    conditions = (sizes.padding_inside(0),)

    attention_bias: sizes.Flag = sizes.hf("use_bias")
