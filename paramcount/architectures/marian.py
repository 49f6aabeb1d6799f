"""Marian: a translator whose two languages may have tables of their own.

Places are fixed sines, kept as a frozen table.
"""

from typing import Any

from paramcount.flow import Data, Size, Unreachable
from paramcount.parts.seq2seq import DECODER, Seq2Seq, Tables, TiedDecoder, post_norm_layer
from paramcount.sizes import ConfigJson, FieldValues, Flag, Positive, derived, hf
from paramcount.sizes.conditions import padding_inside


def target_vocabulary(js: ConfigJson, c: FieldValues) -> Any:
    return js.get("decoder_vocab_size") or c["vocab_size"]


class Marian(Seq2Seq):
    """Source: arXiv:1804.00344; modeling_marian.py of the reference."""

    reference = "MarianMTModel"
    not_saved = ("embed_positions.weight",)  # its _keys_to_ignore_on_save
    conditions = (padding_inside(58100, "target_vocab_size"),)
    required_keys = ("pad_token_id",)  # if the vocabulary is smaller than 58,101

    target_vocab_size: Positive = derived(target_vocabulary)
    languages_share: Flag = hf("share_encoder_decoder_embeddings")

    layer = post_norm_layer

    def tables(c) -> Tables:
        shared = "model.shared.weight" if c.languages_share and c.tie_word_embeddings else None
        if c.languages_share:
            return Tables(c.vocab_size, c.target_vocab_size, c.vocab_size, shared, shared)
        own = DECODER + "embed_tokens.weight" if c.tie_word_embeddings else None
        return Tables(c.vocab_size, c.target_vocab_size, c.target_vocab_size, None, own)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return super().unreachable(tokens) if c.languages_share else ()


class MarianDecoder(TiedDecoder):
    """Source: arXiv:1804.00344; modeling_marian.py of the reference."""

    reference = "MarianForCausalLM"
    model_types = ("marian.MarianForCausalLM",)
    conditions = (padding_inside(58100, "target_vocab_size"),)

    target_vocab_size: Positive = derived(target_vocabulary)

    layer = post_norm_layer

    def vocabulary(c) -> tuple[Size, Size]:
        return c.target_vocab_size, c.target_vocab_size if c.tie_word_embeddings else c.vocab_size
