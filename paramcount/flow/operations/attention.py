"""Attention over tokens, and the choice of those that it sees."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, pi, sqrt
from typing import Any, ClassVar, Literal

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.masks import Reach, count_ended
from paramcount.flow.operation import Array, Form, Operation, Pass, Shape, Stage, Unknown, Value, is_known, np, require
from paramcount.flow.operations.elementwise import LEAST_FLOAT32
from paramcount.flow.operations.routing import choose_largest

INVERSE_STEPS = 6


class Attention(Operation):
    """softmax(scale · QKᵀ + biases) · V over heads; a trace shows its matrix products one by one.

    Inputs: q [n, heads, d], k [m, kv_heads, d], v [m, kv_heads, d_v]; if `has_own`, a key and a value that only the
    query of the same row sees, [n, heads, d], and the bias on its score, [n, heads]; biases [n, m, heads] or [n, m], or
    [m, kv_heads] if `by_key`; if there is a `compressed_block`, keys and values in one [blocks, d], each for a block of
    tokens; and, if `has_choice`, the tokens or blocks that each query attends to, [n, chosen] or [n, groups of heads,
    chosen].
    """

    name: ClassVar[str] = "attention"
    scores: ClassVar[Stage] = Stage("QKᵀ", "attention scores", Form.SCORES)
    biased_scores: ClassVar[Stage] = Stage("add bias", "added to the attention scores", Form.SUM)
    selection: ClassVar[Stage] = Stage("select tokens", "attends only to the selected tokens")
    mask: ClassVar[Stage] = Stage("mask", "", Form.MASK)
    attention_weights: ClassVar[Stage] = Stage("softmax", "attention weights", Form.ATTENTION_WEIGHTS)
    collisions: ClassVar[Stage] = Stage(
        "(1 − arccos / π)ⁿ", "probabilities of a hash collision", Form.ATTENTION_WEIGHTS
    )
    inverse: ClassVar[Stage] = Stage("pseudoinverse", f"of the attention weights, in {INVERSE_STEPS} steps")
    weighted_values: ClassVar[Stage] = Stage("· V", "weighted sum of values", Form.WEIGHTED_VALUES)
    window: Size | None = None  # causal: tokens visible, itself included; else: tokens visible on either side
    cached: tuple[Data, ...] = ()  # KV cache
    causal: bool = True  # whether a token sees no later tokens
    keeps_all: bool = False  # whether the KV cache keeps tokens outside of the window
    scale: float | Unknown | None = None  # None: 1 / √d
    soft_cap: float | Unknown | None = None
    chunk: Size | Unknown | None = None  # tokens see only their own chunk of the text
    has_choice: bool = False  # the last input: indices of the only tokens that a query attends to
    has_sinks: bool = False  # one more learned score per head, which takes part in the softmax alone
    longest: int | Unknown | None = None  # keys that are all attended to; of more only some blocks are
    by_key: bool = False  # whether a bias is the same for all queries
    # Whether biases are [n, heads, distances]: one for each distance, and 0 beyond; or, in two dimensions, one for each
    # distance in rows, then in columns, both from -(distances // 2) on. Then an input holds the places, [n, 2].
    by_distance: Literal["no", "in tokens", "in rows and columns"] = "no"
    n_kept: int | Unknown | None = None  # a head attends to the keys with the largest biases, so many
    compressed_block: Size | None = None  # tokens of each of the further keys, which has to end before the query
    chosen_block: Size = 1  # tokens of what is chosen
    grouped: bool = False  # the last input: the group of each token, which attends to its own group alone
    except_in: tuple[int, ...] | Unknown = ()  # layers in which groups do not matter
    has_own: bool = False
    chunk_offset: Size = 0  # tokens that are missing from the first chunk
    # What weighs the values. "inverse": not the attention weights, but their pseudoinverse, [n, n]. Source:
    # arXiv:2102.03902 §3.2. "collisions": how likely `exponent` random hyperplanes all have q and k, of length 1, on
    # the same side; the sum of the weights is not 1. Source: arXiv:2111.09714 §3.
    weighs: Literal["softmax", "inverse", "collisions"] = "softmax"
    exponent: int | Unknown = 1
    has_marks: bool = False  # the last input: 1 for each key that all queries see, else 0, [m]
    behind: Size | None = None  # not causal: tokens visible before the query, if not as many as after it
    caps_biases: bool = False  # the soft cap limits the scores with their biases
    # The two last inputs: other queries, for the keys after the first ones, which are as many as the last input has.
    has_others: bool = False
    more_chunks: tuple[int, int] = (0, 0)  # not causal: so many chunks before their own, and after it, are seen too
    itself_last: bool = False  # a token sees itself only if it sees no other
    has_key_groups: bool = False  # the input behind the groups: those of the keys, if they differ from the queries'
    front_in_order: bool = False  # rows in front of the text are seen by later rows alone, not by all
    # Tokens that the KV cache keeps at most, the newest included, if not as many as the window: then a prompt's token
    # sees more than one that is decoded.
    kept: Size | None = None

    def describe(self) -> str:
        if self.weighs == "collisions":
            return f"n = {self.exponent}" if is_known(self.exponent) else ""
        text = f"× {self.scale:g}" if isinstance(self.scale, (int, float)) else ""
        if self.scale == 1:
            text = "not scaled"
        if isinstance(self.soft_cap, (int, float)):
            text += f"{', ' if text else ''}soft cap at {self.soft_cap:g}"
        if isinstance(self.n_kept, int):
            text += f"{', ' if text else ''}to the {self.n_kept:,} tokens with the largest biases"
        if self.compressed_block is not None:
            text += f"{', ' if text else ''}also to compressed blocks of {self.compressed_block:,} tokens"
        if self.has_marks:
            text += f"{', ' if text else ''}also to global tokens"
        if self.itself_last:
            text += f"{', ' if text else ''}to itself only if to no other token"
        return text

    @property
    def trimmed_to(self) -> Size | None:
        """Tokens that the KV cache keeps at most, the newest included; None for all."""
        if self.kept is not None:
            return self.kept
        return None if self.keeps_all else self.window

    @property
    def has_memory(self) -> bool:
        """Whether keys of an encoder's output, which all queries see, stand in front of those of the tokens."""
        return {"source", "tokens"} <= {entry.shape[0] for entry in self.cached}

    @property
    def reach(self) -> Reach:
        """How far a query of the text sees; a setting that is unknown limits nothing."""
        limits: dict[str, Any] = {"after": 0} if self.causal else {}
        if self.window is not None:
            behind = self.window if self.behind is None else self.behind
            limits = (
                {"before": self.window - 1, "after": 0} if self.causal else {"before": behind, "after": self.window}
            )
        if self.chunk is not None and not isinstance(self.chunk, Unknown):
            limits.update(chunk=self.chunk, offset=self.chunk_offset)
            limits.update(zip(("chunks_before", "chunks_after"), self.more_chunks))
        return Reach(**limits)

    def count_inverse(self, heads: int, n: int) -> int:
        """Multiply-adds of the pseudoinverses: four products in each of the steps."""
        return 4 * INVERSE_STEPS * heads * n * n * n if self.weighs == "inverse" else 0

    def list_saved(self, inputs: Sequence[Value]) -> Sequence[Value]:
        blocks = () if self.compressed_block is None else inputs[-2 if self.has_choice else -1 :][:1]
        others = inputs[-2:-1] if self.has_others else ()
        # biases are added, and a choice is not differentiated
        return (*inputs[: 5 if self.has_own else 3], *blocks, *others)

    def count_visible(self, n: int, m: int, end: int, front: tuple[int, int] = (0, 0), most: int | None = None) -> int:
        """The pairs of one of the last n queries and one of the last m keys before the position `end` that it attends
        to, without what data decide: groups and global tokens.

        `front`: how many of the queries and of the keys stand in front of the text. `most`: the pairs of the text that
        a choice leaves.
        """
        reach = self.reach
        if isinstance(self.n_kept, int):
            reach = reach._replace(most=self.n_kept)
        (first_queries, first_keys), text = front, (range(end - n + front[0], end), range(end - m + front[1], end))
        visible = reach.count_pairs(*text)
        if most is not None:
            visible = min(visible, most)
        if not self.front_in_order:
            return visible + n * first_keys + (0 if self.causal else first_queries * len(text[1]))
        before = range(-first_keys, 0)
        visible += reach.count_pairs(text[0], before)
        return visible + (reach.count_pairs(range(-first_queries, 0), before) if self.causal else first_queries * m)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, k, v, *biases = inputs
        own, biases = (biases[:3], biases[3:]) if self.has_own else ([], biases)
        n_first = len(biases.pop()) if self.has_others else 0
        others = biases.pop() if self.has_others else None
        marks = biases.pop() if self.has_marks else None
        key_groups = biases.pop() if self.has_key_groups else None
        groups = biases.pop() if self.grouped else None
        chosen = biases.pop() if self.has_choice else None
        q, k, v = (x[:, None] if x.ndim == 2 else x for x in (q, k, v))
        n_blocks = 0
        if self.compressed_block is not None:
            blocks = biases.pop()[:, None]
            n_blocks, k, v = len(blocks), np.concatenate((k, blocks)), np.concatenate((v, blocks))
        n, heads, d = q.shape
        m, shared = len(k), heads // k.shape[1]
        if self.longest is not None and m > require(self.longest):
            found = f"{m:,} tokens need block attention, which is not supported"
            raise ParamcountError(found, expected=f"at most {self.longest:,} tokens")
        factor = 1 / sqrt(d) if self.scale is None else require(self.scale)
        queries = q.transpose(1, 0, 2).reshape(k.shape[1], shared * n, d)
        scores = (queries * np.float32(factor)) @ k.transpose(1, 2, 0)
        scores = scores.reshape(heads, n, m)
        if others is not None:
            later = (others.transpose(1, 0, 2) * np.float32(factor)) @ k[n_first:].transpose(1, 2, 0)
            scores[..., n_first:] = later
        cap = require(self.soft_cap)
        if cap is not None and not self.caps_biases:
            scores = np.tanh(scores / np.float32(cap)) * np.float32(cap)
        if self.by_key:
            biases = [np.broadcast_to(np.repeat(bias, shared, axis=1), (n, m, heads)) for bias in biases]
        if self.by_distance == "in rows and columns":
            places = biases.pop()
            biases = [self.find_biases_in(bias, places[:, axis]) for axis, bias in enumerate(biases)]
        if self.by_distance == "in tokens":
            biases = [self.find_biases(bias, run.positions, m) for bias in biases]
        for bias in (bias[:, -m:] for bias in biases):  # without those of keys that the cache no longer has
            scores = scores + (bias.transpose(2, 0, 1) if bias.ndim == 3 else bias)
        if cap is not None and self.caps_biases:
            scores = np.tanh(scores / np.float32(cap)) * np.float32(cap)
        if self.itself_last:
            scores[:, np.arange(n), np.arange(m - n, m)] = np.float32(-1e5)
        visible = self.visible(run.positions, n, m - n_blocks)
        if visible is not None and marks is not None:
            visible = visible | (marks == 1)
        if visible is not None and n_blocks:
            has_ended = np.arange(n_blocks) < (run.positions[:, None] + 1) // int(require(self.compressed_block))
            visible = np.concatenate((visible, has_ended), axis=-1)
        if groups is not None and run.layer not in require(self.except_in):
            together = groups[:, None] == (groups if key_groups is None else key_groups)
            visible = together if visible is None else visible & together
        if visible is not None:
            scores = np.where(visible, scores, np.float32(-np.inf))
        if self.n_kept is not None and m > require(self.n_kept):
            merit = biases[0].transpose(2, 0, 1)
            merit = merit if visible is None else np.where(visible, merit, np.float32(-np.inf))
            largest = choose_largest(merit.reshape(-1, m), int(require(self.n_kept))).reshape(merit.shape)
            scores = np.where(largest, scores, np.float32(-np.inf))
        if chosen is not None:
            scores = np.where(self.find_chosen(chosen, n_blocks, heads, m), scores, np.float32(-np.inf))
        if own:
            of_own = (q * np.float32(factor) * own[0]).sum(-1) + own[2]
            scores = np.concatenate((scores, of_own.T[..., None]), axis=-1)
        if self.has_sinks:
            sinks = np.broadcast_to(weights[0].reshape(heads, 1, 1), (heads, n, 1))
            scores = np.concatenate((scores, sinks), axis=-1)
        if self.weighs == "collisions":
            every = (1 - np.arccos(np.clip(scores, -1, 1)) / np.float32(pi)) ** int(require(self.exponent))
        else:
            scores = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), np.float32(LEAST_FLOAT32)))
            sums = np.maximum(scores.sum(-1, keepdims=True), 1)  # less than 1 if there is nothing to attend to
            every = (scores / sums).astype(np.float32)
        if self.weighs == "inverse":
            every = invert(every)
        probabilities = every[..., :m]
        if run.watch is not None:
            run.watch["attention weights"] = probabilities
        y = probabilities.reshape(k.shape[1], shared * n, m) @ v.transpose(1, 0, 2)
        y = y.reshape(heads, n, -1).transpose(1, 0, 2)
        if own:
            y = y + every[..., m].T[..., None] * own[1]
        return y.reshape(n, *shape[1:])

    def find_biases(self, bias: Array, positions: Array, m: int) -> Array:
        """[n, heads, distances] to [n, m, heads]."""
        distances = positions[:, None] - np.arange(int(positions[-1]) + 1 - m, int(positions[-1]) + 1)
        reached = (distances >= 0) & (distances < bias.shape[-1])
        found = np.take_along_axis(bias, np.where(reached, distances, 0)[:, None], axis=-1)
        return np.where(reached[:, None], found, 0).transpose(0, 2, 1)

    def find_biases_in(self, bias: Array, places: Array) -> Array:
        """[n, heads, distances] to [n, n, heads]. `places`: the row or the column of each patch. Patches that are
        farther apart do not see one another."""
        distances = places[:, None] - places + bias.shape[-1] // 2
        return np.take_along_axis(bias, np.clip(distances, 0, bias.shape[-1] - 1)[:, None], axis=-1).transpose(0, 2, 1)

    def find_chosen(self, chosen: Array, n_blocks: int, heads: int, m: int) -> Array:
        """[heads or 1, n, m]: which keys are among the chosen ones. Of compressed blocks and tokens, blocks are."""
        chosen = chosen[:, None] if chosen.ndim == 2 else chosen
        n, groups = chosen.shape[:2]
        block = int(self.chosen_block)
        n_choices = n_blocks or -(-m // block)
        found = np.zeros((n, groups, n_choices + 1), dtype=bool)  # the last is for -1, which stands for none
        np.put_along_axis(found, chosen, values=True, axis=-1)
        found = np.repeat(found[..., :-1], block, axis=-1).transpose(1, 0, 2)
        if n_blocks:
            found = np.concatenate((np.ones((groups, n, m - n_blocks), dtype=bool), found), axis=-1)
        return np.repeat(found[..., :m], heads // groups if groups > 1 else 1, axis=0)

    def visible(self, positions: Array, n: int, m: int) -> Array | None:
        """[n, m]: which keys each query sees; None for all. The last keys are those of the new tokens."""
        if not self.causal and self.window is None and self.chunk is None:
            return None
        queries = np.arange(int(positions[-1]) + 1 - n, int(positions[-1]) + 1)[:, None]  # less than 0: before the text
        keys = np.arange(int(positions[-1]) + 1 - m, int(positions[-1]) + 1)[None, :]
        if self.has_memory and self.trimmed_to is not None:
            keys[:, : m - min(int(positions[-1]) + 1, int(self.trimmed_to) - 1 + n)] = -1
        require(self.chunk)
        seen = self.reach.show(queries, keys)
        if not self.causal:
            seen = seen | (queries < 0)
        return seen if self.front_in_order else seen | (keys < 0)


def invert(weights: Array) -> Array:
    """About the pseudoinverse of attention weights [heads, n, n]. Source: arXiv:2102.03902, equation 11."""
    unit = np.eye(weights.shape[-1], dtype=np.float32)
    z = weights.transpose(0, 2, 1) / weights.sum(-2).max()
    for _ in range(INVERSE_STEPS):
        product = weights @ z
        z = 0.25 * z @ (13 * unit - product @ (15 * unit - product @ (7 * unit - product)))
    return z


def attend(
    q: Data,
    k: Data,
    v: Data,
    *biases: Data,
    window: Size | None = None,
    cached: tuple[Data, ...] | None = None,
    sinks: Weight | None = None,
    causal: bool | None = None,
    keeps_all: bool = False,
    scale: float | Unknown | None = None,
    soft_cap: float | Unknown | None = None,
    chunk: Size | Unknown | None = None,
    chosen: Data | None = None,
    longest: int | Unknown | None = None,
    by_key: bool = False,
    by_distance: Literal["no", "in tokens", "in rows and columns"] = "no",
    places: Data | None = None,
    n_kept: int | Unknown | None = None,
    blocks: tuple[Data, Size] | None = None,
    chosen_block: Size = 1,
    within: Data | tuple[Data, Data] | None = None,
    except_in: tuple[int, ...] | Unknown = (),
    own: tuple[Data, Data, Data] | None = None,
    chunk_offset: Size = 0,
    weighs: Literal["softmax", "inverse", "collisions"] = "softmax",
    exponent: int | Unknown = 1,
    marked: Data | None = None,
    behind: Size | None = None,
    caps_biases: bool = False,
    others: tuple[Data, Data] | None = None,
    more_chunks: tuple[int, int] = (0, 0),
    itself_last: bool = False,
    front_in_order: bool = False,
    kept: Size | None = None,
) -> Data:
    """softmax(QKᵀ)·V as one operation.

    `biases`: added to the scores, [n, m, heads]. `cached`: contents of the KV cache (default: k and v). `sinks`: one
    additional learned logit per head. `causal`: default is true for self-attention with a cache. `keeps_all`: the cache
    keeps tokens outside of the window. `scale`: default 1 / √d. `longest`: of more keys, only some blocks are seen.
    `by_key`: the biases are [m, kv_heads], for all queries. `by_distance`, `places`: they are for each distance, see
    `Attention`. `n_kept`: only as many keys are seen, those with the largest biases. `blocks`: keys and values in one,
    [blocks, d], and how many tokens each stands for. `chosen_block`: tokens of each of the blocks that are chosen.
    `within`: the group of each token, or of each query and of each key; it attends to its own, but in the layers of
    `except_in`.
    `own`: key, value and bias that each query has for itself. `chunk`: tokens see only those of their own chunk;
    `chunk_offset` tokens are missing from the first one; `more_chunks`: as in `Attention`. `behind`: without `causal`,
    tokens seen before the query, if not as many as the `window` after it. `caps_biases`: the soft cap comes after the
    biases.
    `itself_last`: a token sees itself only if it sees no other. `front_in_order`, `kept`: as in `Attention`.
    `others`: queries for the keys after the first ones, and what has as many rows as there are first ones.
    `weighs`, `exponent`: as in `Attention`.
    `marked`: 1 for each key that all queries see, whatever the window is, else 0.
    """
    contents = (k, v) if cached is None else cached
    if causal is None:
        causal = bool(contents) and q.shape[0] is k.shape[0]
    operation = Attention(
        window, contents, causal, keeps_all, scale, soft_cap, chunk, chosen is not None, sinks is not None, longest,
        by_key, by_distance, n_kept, blocks[1] if blocks else None, chosen_block,
        within is not None, except_in, own is not None, chunk_offset, weighs, exponent, marked is not None, behind,
        caps_biases, others is not None, more_chunks, itself_last, isinstance(within, tuple), front_in_order, kept,
    )  # fmt: skip
    groups = within if isinstance(within, tuple) else (within,)
    more = (places, blocks[0] if blocks else None, chosen, *groups, marked, *(others or ()))
    added = (*biases, *(extra for extra in more if extra is not None))
    return Data(operation, (q, k, v, *(own or ()), *added), q.shape[:-1] + v.shape[-1:], (sinks,) if sinks else ())


class Differential(Operation):
    """The second half of the heads, times λ, subtracted from the first; an RMS norm of each; times 1 − λ₀.

    λ = exp(q1·k1) − exp(q2·k2) + λ₀ with four learned vectors, and λ₀ = 0.8 − 0.6·exp(−0.3·layer).
    Source: arXiv:2410.05258 §2.1.
    """

    name: ClassVar[str] = "difference"
    eps: float | Unknown

    def describe(self) -> str:
        return "first half of the heads − λ · second half, RMS norm, × (1 − λ₀)"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        start = 0.8 - 0.6 * exp(-0.3 * run.layer)
        q1, k1, q2, k2 = weights
        first, second = np.split(inputs[0], 2, axis=1)
        y = first - (np.exp(q1 @ k1) - np.exp(q2 @ k2) + np.float32(start)) * second
        y = y / np.sqrt((y * y).mean(-1, keepdims=True) + np.float32(require(self.eps)))
        return (y * np.float32(1 - start)).reshape(len(y), *shape[1:])


def differential(x: Data, prefix: str, d_head: Size, eps: float | Unknown) -> Data:
    """[n, heads, 2·d] to [n, heads, d]: half as many heads."""
    learned = tuple(Weight(prefix + f"lambda_{name}", "other", (d_head,)) for name in ("q1", "k1", "q2", "k2"))
    return Data(Differential(eps), (x,), (*x.shape[:2], d_head), learned)


class ChooseTokens(Operation):
    """The n_chosen best tokens for each token, by Σ over heads of weight · ReLU(q · k / √d) / √heads: their indices.

    Inputs: q [n, heads, d], k [m, d] and the weights of the heads [n, heads]. Source: arXiv:2512.02556 §2.1.
    If `of` is "blocks", every key stands for a block of tokens, which has to end before the query. If it is "tokens of
    blocks", the tokens of such blocks are chosen, n_chosen at most, and, if there is a `tail`, those of the block that
    has not ended. If it is "blocks of keys", every head of q, without weights, chooses its blocks, by the largest q · k
    in a block. In both cases -1 stands for none.
    """

    saves_inputs: ClassVar[bool] = False
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
