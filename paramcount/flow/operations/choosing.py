"""The choice of the tokens, or blocks of tokens, that a query attends to."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Literal

from paramcount.flow.graph import Data, Size
from paramcount.flow.operation import Array, Operation, Pass, Shape, Unknown, np, require
from paramcount.flow.reach import Reach, count_ended


class ChooseTokens(Operation, saves_inputs=False):
    """The n_chosen best tokens for each token, by Σ over heads of weight · ReLU(q · k / √d) / √heads: their indices.

    Inputs: q [n, heads, d], k [m, d] and the weights of the heads [n, heads]. Source: arXiv:2512.02556 §2.1.
    If `of` is "blocks", every key stands for a block of tokens, which has to end before the query. If it is "tokens of
    blocks", the tokens of such blocks are chosen, n_chosen at most, and, if there is a `tail`, those of the block that
    has not ended. If it is "blocks of keys", every head of q, without weights, chooses its blocks, by the largest q · k
    in a block. In both cases -1 stands for none.
    """

    n_chosen: Size
    of: Literal["tokens", "blocks", "tokens of blocks", "blocks of keys"] = "tokens"
    block: Size = 1  # tokens per block
    n_local: int | Unknown = 0  # blocks of keys that are always chosen: that of the query and those before it
    tail: bool = False
    causal: bool = True  # whether a token sees no later tokens, if `of` is "tokens"

    @property
    def label(self) -> str:
        return "top-k tokens" if self.of in ("tokens", "tokens of blocks") else "top-k blocks"

    def describe(self) -> str:
        if self.of == "blocks of keys":
            return "per head, the blocks with the largest q · k"
        what = "tokens of the blocks" if self.of == "tokens of blocks" else self.of
        text = f"the {what} with the largest sum over heads of weight · ReLU(q · k)"
        return text + (", and those of the last, incomplete block" if self.tail else "")

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        q, k = inputs[:2]
        return q[1] * q[0] * k[0] * (q[2] + int(self.of != "blocks of keys"))

    def visible_multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape, end: int) -> int:
        (n, heads, d), (m, *_) = inputs[:2]
        queries, has_ended = range(end - n, end), self.of in ("blocks", "tokens of blocks")
        reach = Reach(after=0) if self.causal else Reach()
        pairs = count_ended(queries, int(self.block), m) if has_ended else reach.count_pairs(queries, range(m))
        return heads * pairs * (d + int(self.of != "blocks of keys"))

    def count_chosen(self, queries: range) -> int:
        """The pairs of a query and a token, or a block, that it chooses, if the queries stand at these positions."""
        block, most, text = int(self.block), int(self.n_chosen), range(queries.stop)
        earlier = Reach(after=0).count_pairs(queries, text)
        if self.of == "blocks":
            return count_ended(queries, block, most)
        if self.of == "tokens of blocks":
            rest = earlier - block * count_ended(queries, block) if self.tail else 0
            return block * count_ended(queries, block, most // block) + rest
        if self.of == "blocks of keys" and self.n_local != 0:  # its own block, which may not have ended, is among them
            begun = range(queries.start + block - 1, queries.stop + block - 1)
            return earlier - block * (count_ended(begun, block) - count_ended(begun, block, most))
        reach = Reach(after=0, most=most * block) if self.causal else Reach(most=most * block)
        return reach.count_pairs(queries, text)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, k, *of_heads = inputs
        n, heads, d = q.shape
        positions, keys = run.positions[:, None], np.arange(len(k))
        products = (q.reshape(n * heads, d) @ k.reshape(len(k), d).T).reshape(n, heads, len(k))
        if self.of == "blocks of keys":
            return self.choose_blocks(np.where((keys <= positions)[:, None], products, -np.inf), positions)
        similar = np.maximum(products / np.float32(sqrt(d)), 0)
        scores = ((of_heads[0] / np.float32(sqrt(heads)))[:, None] @ similar)[:, 0]
        is_seen = (
            keys <= (positions if self.causal else len(k))
            if self.of == "tokens"
            else keys < (positions + 1) // int(self.block)
        )
        scores = np.where(is_seen, scores, -np.inf)
        if self.of == "tokens of blocks":
            return self.list_tokens(scores, positions)
        return np.argsort(-scores, axis=-1, kind="stable")[:, : int(self.n_chosen)]

    def list_tokens(self, scores: Array, positions: Array) -> Array:
        """[n, blocks] to the tokens of the best blocks and of the tail, [n, chosen]."""
        block = int(self.block)
        best = np.argsort(-scores, axis=-1, kind="stable")[:, : int(self.n_chosen) // block]
        tokens = best[..., None] * block + np.arange(block)
        tokens = np.where(np.take_along_axis(scores, best, axis=-1)[..., None] == -np.inf, -1, tokens)
        last = (positions + 1) // block * block + np.arange(block - 1 if self.tail else 0)
        return np.concatenate((tokens.reshape(len(scores), -1), np.where(last <= positions, last, -1)), axis=-1)

    def choose_blocks(self, scores: Array, positions: Array) -> Array:
        """[n, heads, keys] to [n, heads, chosen]."""
        n, heads, m = scores.shape
        block = int(self.block)
        padded = np.pad(scores, ((0, 0), (0, 0), (0, -m % block)), constant_values=-np.inf)
        best = padded.reshape(n, heads, -1, block).max(-1)
        distance = positions // block - np.arange(best.shape[-1])
        is_local = (distance >= 0) & (distance < require(self.n_local))
        best = np.where(is_local[:, None], np.inf, best)
        order = np.argsort(-best, axis=-1, kind="stable")[..., : int(self.n_chosen)]
        return np.where(np.take_along_axis(best, order, axis=-1) == -np.inf, -1, order)


def choose_tokens(q: Data, k: Data, of_heads: Data, n_chosen: Size) -> Data:
    """Indices of the tokens that each token attends to, [n, n_chosen]."""
    return Data(ChooseTokens(n_chosen), (q, k, of_heads), (q.shape[0], n_chosen))


def choose_blocks(q: Data, k: Data, of_heads: Data, n_chosen: Size, block: Size) -> Data:
    """Indices of the blocks, of which k has one key each, that each token attends to, [n, n_chosen]."""
    return Data(ChooseTokens(n_chosen, "blocks", block), (q, k, of_heads), (q.shape[0], n_chosen))


def choose_tokens_of_blocks(q: Data, k: Data, of_heads: Data, n_chosen: Size, block: Size, *, tail: bool) -> Data:
    """Indices of the tokens of the best blocks, of which k has one key each, n_chosen at most, and, if there is a
    `tail`, of those since the last of these blocks: [n, chosen]."""
    width = n_chosen + block - 1 if tail else n_chosen
    return Data(ChooseTokens(n_chosen, "tokens of blocks", block, tail=tail), (q, k, of_heads), (q.shape[0], width))


def choose_blocks_of_keys(q: Data, k: Data, n_chosen: Size, block: Size, n_local: int | Unknown) -> Data:
    """Indices of the blocks of tokens that each token attends to, for each head of q, [n, heads, n_chosen]."""
    operation = ChooseTokens(n_chosen, "blocks of keys", block, n_local)
    return Data(operation, (q, k), (*q.shape[:2], n_chosen))
