"""BigBird-Pegasus: Pegasus with learned places and an encoder that looks at a window, the ends and random blocks.

A decoder alone is never tied to its tokens.
"""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.bart import Seq2Seq, UntiedDecoder
from paramcount.flow import Data
from paramcount.parts.seq2seq import Layout, decoder_alone, seq2seq
from paramcount.sizes import Condition, Flag, hf
from paramcount.sizes.conditions import one_of, padding_inside

LAYOUT = Layout(before=True, last_norm="layernorm_embedding")
MATRICES = ("self.query", "self.key", "self.value", "output")  # of the encoder
ATTENTION = one_of("attention_type", ("block_sparse", "original_full"), absent="block_sparse")


class BigBirdPegasus(Seq2Seq):
    """Source: arXiv:2007.14062, section 4; modeling_bigbird_pegasus.py of the reference."""

    reference: ClassVar[str] = "BigBirdPegasusForConditionalGeneration"
    unused_keys: ClassVar[tuple[str, ...]] = ("block_size", "num_random_blocks")
    conditions: ClassVar[tuple[Condition, ...]] = (padding_inside(0), ATTENTION)
    defaults: ClassVar = {"vocab_size": 96103, "n_encoder_layers": 16, "n_decoder_layers": 16, "n_positions": 4096}

    attention_bias: Flag = hf("use_bias", absent=False)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return seq2seq(c, tokens, LAYOUT, head=head, names=MATRICES, bias=c.attention_bias)


class BigBirdPegasusDecoder(UntiedDecoder):
    """Source: arXiv:2007.14062, section 4."""

    reference: ClassVar[str] = "BigBirdPegasusForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_inside(0),)
    defaults: ClassVar = {"vocab_size": 96103, "n_layers": 16, "n_positions": 4096}

    attention_bias: Flag = hf("use_bias", absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder_alone(c, tokens, LAYOUT, bias=c.attention_bias)
