"""FSMT, the translators of WMT 2019: post-norm, a token embedding per language, a frozen table of sinusoids."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes


def position_rows(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    """Rows stand before the first position, up to that of the padding token."""
    token = js.get("pad_token_id", 1)
    return c["n_positions"] + token + 1 if isinstance(token, int) else None


def padding_has_rows(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """A negative padding token counts back from the end of each table, which a shared one ends earlier."""
    token, is_tied = js.get("pad_token_id", 1), c["tie_word_embeddings"]
    reaches_shared = not is_tied or token + c["n_source_tokens"] < c["vocab_size"]
    if token < 0 and not (reaches_shared and token + c["n_position_rows"] >= 0):
        raise sizes.make_value_error(token, "pad_token_id", "0 or more")


class FSMT(parts.Seq2Seq):
    """Source: arXiv:1907.06616, section 3; modeling_fsmt.py of the reference."""

    is_causal: ClassVar[Any] = True  # its attention has a mask of its own

    reference = "FSMTForConditionalGeneration"
    equivalent_classes = ("FSMTModel",)  # whose decoder ends with the LM head
    linear_heads = (".output_projection.weight",)
    not_saved = ("embed_positions.weight",)  # of the released files
    conditions = (sizes.padding_inside(1, "n_source_tokens"), padding_has_rows)

    vocab_size: sizes.Positive = sizes.hf("vocab_size", "tgt_vocab_size")
    n_source_tokens: sizes.Positive = sizes.hf("src_vocab_size")
    n_position_rows: sizes.Positive = sizes.derived(position_rows)
    tie_word_embeddings: sizes.Flag = sizes.hf()

    layer = parts.seq2seq.post_norm_layer
    embedding_scale = parts.scale_embedding(default=True)
    first_position = parts.first_after_padding(1)

    def positions(c, tokens: Data, prefix: str) -> Data:
        name, first = prefix + "embed_positions.weight", c.first_position
        return ops.lookup_position(tokens, name, c.n_position_rows, c.d_model, offset=first)

    def tables(c) -> parts.Tables:
        n, table = c.vocab_size, parts.DECODER + "embed_tokens.weight"
        return (
            parts.Tables(n, n, n, table, table)
            if c.tie_word_embeddings
            else parts.Tables(c.n_source_tokens, n, n, None, None)
        )

    def logits(c, x: Data) -> Data:
        t = c.tables()
        return ops.linear(x, parts.DECODER + "output_projection", "lm_head", t.head, tied_to=t.head_tied_to)

    unreachable = sizes.Sizes.unreachable

    def check(c) -> None:
        sizes.check_stack_heads(c)
        sizes.check_sinusoids(c)
