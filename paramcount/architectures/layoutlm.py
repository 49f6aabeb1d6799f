"""LayoutLM: BERT whose tokens also have a place on a page, whose four edges, height and width are looked up."""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes

# {what is looked up: its table}; edges of one axis share theirs
BOX = {"left": "x", "upper": "y", "right": "x", "lower": "y", "height": "h", "width": "w"}


class LayoutLM(parts.MaskedEncoder):
    """Source: arXiv:1912.13318, section 2.2; LayoutLMEmbeddings of the reference."""

    reference = "LayoutLMForMaskedLM"
    task_heads = {
        "ForSequenceClassification": parts.POOLED,
        "ForTokenClassification": parts.TOKENS,
        "ForQuestionAnswering": parts.SPAN_OF_LABELS,
    }
    prefix = "layoutlm."
    pooled: ClassVar[bool] = True

    n_token_types: sizes.Positive = sizes.hf()
    n_page_positions: sizes.Positive = sizes.hf("max_2d_position_embeddings")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def inputs(c) -> dict[str, int]:
        return {"segments": 0, **dict.fromkeys(BOX, 0)}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        segments, *box = reads
        x, tables = parts.embed_tokens(c, tokens, segments, c.d_model), set[str]()
        for places, axis in zip(box, BOX.values(), strict=True):
            name = f"layoutlm.embeddings.{axis}_position_embeddings.weight"
            tied_to = name if axis in tables else None
            x = x + ops.lookup(places, name, "position", c.n_page_positions, c.d_model, tied_to=tied_to)
            tables.add(axis)
        return c.norm(x, "layoutlm.embeddings.LayerNorm")
