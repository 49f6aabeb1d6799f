"""BigBird-Pegasus: Pegasus with learned places and an encoder that looks at a window, the ends and random blocks.

A decoder alone is never tied to its tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paramcount.flow import Data
from paramcount.parts.classic import Stack, multi_head
from paramcount.parts.seq2seq import Seq2Seq, Stacks, UntiedDecoder, pre_norm_layer, scale_embedding
from paramcount.sizes import Flag, hf, setting
from paramcount.sizes.conditions import one_of, padding_inside

MATRICES = ("self.query", "self.key", "self.value", "output")  # of the encoder
ATTENTION = one_of("attention_type", ("block_sparse", "original_full"), absent="block_sparse")


def find_longest(config: Mapping[str, Any], c: Any) -> int | None:
    """Tokens up to which the encoder attends to all of them. Source: BigBirdPegasusEncoder."""
    if config.get("attention_type", "block_sparse") != "block_sparse":
        return None
    return int((5 + 2 * config.get("num_random_blocks", 3)) * config.get("block_size", 64))


class BigBirdPegasusStacks(Stacks):
    layer = pre_norm_layer
    last_norm = "layernorm_embedding"

    activation = setting("activation_function", default="gelu_new")
    embedding_scale = scale_embedding(default=True)
    longest = setting(default=find_longest)

    if TYPE_CHECKING:  # a field of the subclasses
        attention_bias: Flag

    def self_attention(c, s: Stack, x: Data, *, cached: bool) -> Data:
        if cached:
            return multi_head(s, x, "self_attn.", bias=c.attention_bias)
        return multi_head(s, x, "self_attn.", MATRICES, cached=False, bias=c.attention_bias, longest=c.longest)

    def cross_attention(c, s: Stack, x: Data, memory: Data) -> Data:
        return multi_head(s, x, "encoder_attn.", memory=memory, bias=c.attention_bias)


class BigBirdPegasus(BigBirdPegasusStacks, Seq2Seq):
    """Source: arXiv:2007.14062, section 4; modeling_bigbird_pegasus.py of the reference."""

    reference = "BigBirdPegasusForConditionalGeneration"
    task_heads = "BART"
    unused_keys = ("block_size", "num_random_blocks")
    conditions = (padding_inside(0), ATTENTION)

    attention_bias: Flag = hf("use_bias")


class BigBirdPegasusDecoder(BigBirdPegasusStacks, UntiedDecoder):
    """Source: arXiv:2007.14062, section 4."""

    reference = "BigBirdPegasusForCausalLM"
    model_types = ("bigbird_pegasus.BigBirdPegasusForCausalLM",)
    conditions = (padding_inside(0),)

    attention_bias: Flag = hf("use_bias")
