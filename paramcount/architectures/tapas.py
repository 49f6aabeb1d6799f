"""TAPAS: BERT over a question and the cells of a table, with a table of vectors for each of several token types.

The types say, among others, in which column and row a token stands.
"""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

COLUMN, ROW = 1, 2  # which token types these are


class Tapas(parts.Encoder):
    """Source: arXiv:2004.02349, section 2; TapasEmbeddings of the reference."""

    reference = "TapasForMaskedLM"
    task_heads = {"ForSequenceClassification": parts.POOLED}
    prefix = "tapas."

    n_token_types: sizes.Widths = sizes.hf("type_vocab_sizes")
    by_cell: sizes.Flag = sizes.hf("reset_position_index_per_cell")
    pooled: sizes.Flag = sizes.derived(sizes.class_ends("Model", "ForSequenceClassification"))
    tie_word_embeddings: sizes.Flag = sizes.hf()

    @property
    def causal(c) -> bool:
        """Tokens see later ones, also if is_decoder lets the model attend to an encoder."""
        return False

    def inputs(c) -> dict[str, int | ops.Unknown | None]:
        return {f"token types {i}": 0 for i in range(len(c.n_token_types))}

    def embed(c, tokens: Data, *types: Data) -> Data:
        names = "tapas.embeddings."
        x = ops.lookup(tokens, names + "word_embeddings.weight", "embedding", c.vocab_size, c.d_model)
        name = names + "position_embeddings.weight"
        if c.by_cell:
            places = ops.position_in_cell(tokens, types[COLUMN], types[ROW], c.n_positions)
            x = x + ops.lookup(places, name, "position", c.n_positions, c.d_model)
        else:
            x = x + ops.lookup_position(tokens, name, c.n_positions, c.d_model)
        for i, (ids, rows) in enumerate(zip(types, c.n_token_types, strict=True)):
            x = x + ops.lookup(ids, f"{names}token_type_embeddings_{i}.weight", "other_embedding", rows, c.d_model)
        return c.norm(x, names + "LayerNorm")

    def check(c) -> None:
        super().check()
        n = len(c.n_token_types)
        if c.by_cell and n <= ROW:
            raise ParamcountError(
                f"has {n} entries, but positions are counted by column and row",
                where=FieldName("n_token_types"),
                expected="at least three entries",
            )
