"""What a convolution reads beyond its rows: how many rows before and behind them, and what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from paramcount.flow.graph import Size
from paramcount.flow.operation import Array, Unknown, np, require

Rule: TypeAlias = Literal[
    "around", "around, fewer before", "before", "before, filled", "halves, filled", "same", "behind", "least", "later"
]
Edges: TypeAlias = Literal["zeros", "mirrored", "repeated"]
MODES: dict[str, Literal["constant", "reflect", "edge"]] = {
    "zeros": "constant", "mirrored": "reflect", "repeated": "edge",
}  # fmt: skip


def pad_least(n: int, reach: int, stride: int) -> tuple[int, int]:
    zeros = max((-(-n // stride) - 1) * stride + reach + 1 - n, 0)
    return zeros // 2, zeros - zeros // 2


def pad_halves(n: int, reach: int, stride: int) -> tuple[int, int]:
    beyond = reach + 1 - stride
    return beyond - beyond // 2, beyond // 2 + -n % stride


# Rows before and behind n of them, if a step reads `reach` rows besides the first and the next step is `stride` away.
RULES: dict[str, Callable[[int, int, int], tuple[int, int]]] = {
    "around": lambda n, reach, stride: (-(-reach // 2), reach // 2),
    "around, fewer before": lambda n, reach, stride: (reach // 2, -(-reach // 2)),
    "before": lambda n, reach, stride: (reach + 1 - stride, 0),
    "before, filled": lambda n, reach, stride: (reach + 1 - stride, -n % stride),
    "halves, filled": pad_halves,
    "same": lambda n, reach, stride: (reach // 2, reach // 2),
    "behind": lambda n, reach, stride: (0, reach // 2),
    "least": pad_least,
    "later": lambda n, reach, stride: (0, reach),
}


class Padding(NamedTuple):
    """Rows that stand before and behind those that a convolution reads.

    "around": half of what a step reads besides its own row on either side, of an odd number one more before, or "fewer
    before"; "same": as many on either side. "before": all of them, so that no later row is seen; "filled": and behind
    as many as the last step needs. "halves": of what a step reads beyond its stride, half before, rounded up, and half
    behind. "behind": half of them, only behind. "least": as few as leave a value for each step. "later": all behind.
    """

    rule: Rule | Unknown = "around"
    edges: Edges | Unknown = "zeros"  # what the rows are: zeros, mirrored ones, or the outermost one

    @property
    def sees_past(self) -> bool:
        """Whether no later row is seen."""
        return isinstance(self.rule, str) and self.rule.startswith("before")

    def count_rows(self, n: int, reach: int, stride: int) -> tuple[int, int]:
        return RULES[require(self.rule)](n, reach, stride)

    def pad(self, x: Array, reach: int, stride: int) -> Array:
        """[n, channels] with what stands before and behind."""
        (before, behind), edges, n_more = self.count_rows(len(x), reach, stride), require(self.edges), 0
        if edges == "mirrored":  # a sound that is shorter than what is mirrored has zeros behind it
            n_more = max(max(before, behind) - len(x) + 1, 0)
            x = np.pad(x, ((0, n_more), (0, 0)))
        padded = np.pad(x, ((before, behind), (0, 0)), MODES[edges])
        return padded[: len(padded) - n_more]


class Zeros(NamedTuple):
    """So many rows of zeros on either side."""

    n: Size | Unknown

    @property
    def sees_past(self) -> bool:
        return False

    def count_rows(self, n: int, reach: int, stride: int) -> tuple[int, int]:
        return int(require(self.n)), int(require(self.n))

    def pad(self, x: Array, reach: int, stride: int) -> Array:
        return np.pad(x, (self.count_rows(len(x), reach, stride), (0, 0)))


AROUND, BEFORE, SAME, BEHIND, LEAST = (Padding(rule) for rule in ("around", "before", "same", "behind", "least"))
FEWER_BEFORE, LATER = Padding("around, fewer before"), Padding("later")
