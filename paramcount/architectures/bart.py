"""BART: an encoder-decoder with learned positions, post-norm, one token embedding for encoder, decoder and LM head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data, Unreachable
from paramcount.parts.classic import unread_table
from paramcount.parts.seq2seq import Layout, decoder_alone, seq2seq
from paramcount.sizes import Condition, Derivation, Flag, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.conditions import padding_inside
from paramcount.sizes.rules import check_heads_fill, check_stack_heads

LAYOUT = Layout(extra_places=2, tables_normed=True)


def share(heads: str) -> Derivation:
    """The width of a head of the stack that has so many."""

    def per_head(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
        n: int = c["d_model"] // c[heads]
        return n

    return per_head


class Seq2Seq(Sizes):
    """What encoder-decoders of the BART kind share."""

    conditions: ClassVar[tuple[Condition, ...]] = (padding_inside(1),)

    vocab_size: Positive = hf(absent=50265)
    d_model: Positive = hf("hidden_size", "d_model", absent=1024)
    n_encoder_layers: Positive = hf("num_hidden_layers", "encoder_layers", absent=12)
    n_decoder_layers: Positive = hf(absent=12)
    n_encoder_heads: Positive = hf("num_attention_heads", "encoder_attention_heads", absent=16)
    n_decoder_heads: Positive = hf(absent=16)
    d_encoder_head: Positive = derived(share("n_encoder_heads"))
    d_decoder_head: Positive = derived(share("n_decoder_heads"))
    d_encoder_ff: Positive = hf(absent=4096)
    d_decoder_ff: Positive = hf(absent=4096)
    n_positions: Positive = hf("max_position_embeddings", absent=1024)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        raise NotImplementedError

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return () if c.tie_word_embeddings else unread_table(c, tokens, "model.shared.weight", c.vocab_size)

    def check(c) -> None:
        check_stack_heads(c)


class UntiedDecoder(Sizes):
    """What their decoders without an encoder share: they still look at the output of one."""

    conditions: ClassVar[tuple[Condition, ...]] = (padding_inside(1),)

    vocab_size: Positive = hf(absent=50265)
    d_model: Positive = hf("hidden_size", "d_model", absent=1024)
    n_layers: Positive = hf("decoder_layers", absent=12)
    n_heads: Positive = hf("decoder_attention_heads", absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("decoder_ffn_dim", absent=4096)
    n_positions: Positive = hf("max_position_embeddings", absent=1024)

    def check(c) -> None:
        check_heads_fill(c)


class Decoder(UntiedDecoder):
    tie_word_embeddings: Flag = hf(absent=True)


class Bart(Seq2Seq):
    """Source: arXiv:1910.13461, section 2.1."""

    reference: ClassVar[str] = "BartForConditionalGeneration"

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return seq2seq(c, tokens, LAYOUT, head=head)


class BartDecoder(Decoder):
    """Source: arXiv:1910.13461, section 2.1."""

    reference: ClassVar[str] = "BartForCausalLM"

    def forward(c, tokens: Data) -> Data:
        return decoder_alone(c, tokens, LAYOUT)


class PLBart(Bart):
    """BART for programs, which it equals but for its sizes. Source: arXiv:2103.06333, section 2."""

    reference: ClassVar[str] = "PLBartForConditionalGeneration"
    defaults: ClassVar = {
        "vocab_size": 50005,
        "d_model": 768,
        "n_encoder_layers": 6,
        "n_decoder_layers": 6,
        "n_encoder_heads": 12,
        "n_decoder_heads": 12,
        "d_encoder_ff": 3072,
        "d_decoder_ff": 3072,
    }


class PLBartDecoder(BartDecoder):
    """Source: arXiv:2103.06333, section 2."""

    reference: ClassVar[str] = "PLBartForCausalLM"
    defaults: ClassVar = {"vocab_size": 50005, "d_model": 768, "n_layers": 6, "n_heads": 12, "d_ff": 3072}
