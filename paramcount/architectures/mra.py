"""MRA: attention that is exact for the blocks of tokens with the largest scores and coarse for the others."""

from math import isqrt, sqrt

from paramcount.declare import Data, ops, parts, sizes

BLOCK = 32  # tokens; heads are padded to as many values


class Mra(parts.OffsetEncoder):
    """Source: arXiv:2207.10284, section 4; MraSelfAttention of the reference: in short texts, all blocks are exact."""

    reference = "MraForMaskedLM"
    task_heads = "APPROXIMATE"
    prefix = "mra."

    longest = sizes.setting(default=lambda js, c: find_longest(c.n_positions // BLOCK, js.get("block_per_row", 4)))
    scale = sizes.setting(default=lambda js, c: 1 / sqrt(max(c.d_head, BLOCK)))

    def positions(c, tokens: Data) -> Data:
        """The numbers of the rows are stored, too."""
        rows = super().positions(tokens)
        numbers = ops.Weight("mra.embeddings.position_ids", "position", (1, c.n_positions), role="buffer")
        return Data(rows.operation, rows.inputs, rows.shape, (*rows.weights, numbers))

    def attention(c, q: Data, k: Data, v: Data) -> Data:
        return ops.weighted_sum(ops.softmax(ops.scores(q, k, c.scale, longest=c.longest)), v)  # [n, n_heads, d_head]


def find_longest(n_blocks: int, per_row: int) -> int:
    """Tokens up to which each block of them attends to each other exactly."""
    return BLOCK * min(n_blocks, isqrt(max(n_blocks * per_row, 0)))
