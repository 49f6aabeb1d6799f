"""Marian: a translator whose two languages may have tables of their own.

Places are fixed sines, kept as a frozen table.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


def target_vocabulary(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    return js.get("decoder_vocab_size") or c["vocab_size"]


class Marian(parts.Seq2Seq):
    """Source: arXiv:1804.00344; modeling_marian.py of the reference."""

    reference = "MarianMTModel"
    not_saved = ("embed_positions.weight",)  # its _keys_to_ignore_on_save
    conditions = (sizes.padding_inside(58100, "target_vocab_size"),)
    required_keys = ("pad_token_id",)  # if the vocabulary is smaller than 58,101

    target_vocab_size: sizes.Positive = sizes.derived(target_vocabulary)
    languages_share: sizes.Flag = sizes.hf("share_encoder_decoder_embeddings")

    layer = parts.seq2seq.post_norm_layer

    def tables(c) -> parts.Tables:
        shared = "model.shared.weight" if c.languages_share and c.tie_word_embeddings else None
        if c.languages_share:
            return parts.Tables(c.vocab_size, c.target_vocab_size, c.vocab_size, shared, shared)
        own = parts.DECODER + "embed_tokens.weight" if c.tie_word_embeddings else None
        return parts.Tables(c.vocab_size, c.target_vocab_size, c.target_vocab_size, None, own)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        return super().unreachable(tokens) if c.languages_share else ()


class MarianDecoder(parts.TiedDecoder):
    """Source: arXiv:1804.00344; modeling_marian.py of the reference."""

    reference = "MarianForCausalLM"
    model_types = ("marian.MarianForCausalLM",)
    conditions = (sizes.padding_inside(58100, "target_vocab_size"),)

    target_vocab_size: sizes.Positive = sizes.derived(target_vocabulary)

    layer = parts.seq2seq.post_norm_layer

    def vocabulary(c) -> tuple[ops.Size, ops.Size]:
        return c.target_vocab_size, c.target_vocab_size if c.tie_word_embeddings else c.vocab_size
