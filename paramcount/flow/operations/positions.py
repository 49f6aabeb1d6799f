"""Rotary embeddings: pairs of values that rotate with the position. Source: arXiv:2104.09864."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

from paramcount.flow.graph import Data, Size, make_step
from paramcount.flow.operation import Array, Operation, Pass, Shape, Unknown, np, require

if TYPE_CHECKING:
    from paramcount.flow.operations.rotary_scaling import Rope

# Which values form a pair: those half the axis apart, or neighbours; reversed: rotated the other way.
Pairing: TypeAlias = Literal["halves", "interleaved", "reversed halves", "reversed interleaved"]

# ---- several positions for each row: time, row and column

Order: TypeAlias = Literal[
    "sections", "interleaved", "restarted", "alternating", "in turns", "in turns, time last", "across halves"
]


def interleave(half: int, sections: tuple[int, ...]) -> Array:
    """In turns, as long as there are pairs of each section; the rest with the first."""
    axes = np.zeros(half, np.int64)
    for i in range(1, len(sections)):
        axes[i : len(sections) * sections[i] : len(sections)] = i
    return axes


def put_time_last(half: int, sections: tuple[int, ...]) -> Array:
    """In turns with row and column; the last ones, as many as the last section has, with time."""
    return np.where(np.arange(half) < half - sections[-1], 1 + np.arange(half) % 2, 0)


def share_equally(half: int, sections: tuple[int, ...]) -> Array:
    """As many with each position, one position after the other."""
    return np.repeat(np.arange(len(sections)), half // len(sections))


# The position that each pair rotates with.
CHOICES: dict[str, Callable[[int, tuple[int, ...]], Array]] = {
    "sections": lambda half, sections: np.repeat(np.arange(len(sections)), sections),
    "interleaved": interleave,
    "restarted": share_equally,
    "alternating": share_equally,
    "in turns": lambda half, sections: np.tile(np.arange(len(sections))[::-1], half // len(sections)),
    "in turns, time last": put_time_last,
}
# The frequencies of all pairs, if they are not those of one position alone: of a share of them, and how often.
DIVIDED: dict[str, Callable[[Array, int], Array]] = {
    "restarted": lambda frequencies, n: np.tile(frequencies, n),  # not np.tile: counting does not import NumPy
    "in turns": lambda frequencies, n: np.repeat(frequencies, n),
}


class Axes(NamedTuple):
    """Which pairs of values rotate with which position, if there are several: time, row and column.

    "sections": the first pairs with the first position and so on; "interleaved": in turns, as long as there are pairs
    of each section, the rest with the first; "restarted": sections, whose frequencies begin again; "alternating":
    sections, whose frequencies are taken in turns. "in turns": each frequency with the last position, then with the one
    before. "in turns, time last": pairs in turns with row and column, the last ones with time, of which the last
    section has the number. "across halves": as in `RotaryAcrossHalves`.
    """

    sections: tuple[int, ...]  # pairs of each; of equal ones, only their number matters
    order: Order

    @property
    def divides_values(self) -> bool:
        """Whether each axis has frequencies for its share of the values, rather than some of those of all values."""
        return self.order in DIVIDED

    def find_angles(self, places: Array, rope: Rope, d: int, n_tokens: int) -> Array:
        """Angles [n, d / 2] of places [n, axes]."""
        n = len(self.sections)
        frequencies = rope.frequencies(d // n if self.divides_values else d, n_tokens)
        if self.divides_values:
            frequencies = DIVIDED[self.order](frequencies, n)
        if self.order == "alternating":
            frequencies = np.concatenate([frequencies[i::n] for i in range(n)])
        return places[:, CHOICES[self.order](d // 2, self.sections)] * frequencies


# ---- operations


def turn_pairs(x: Array, sines: Array, cosines: Array, pairing: Pairing) -> Array:
    """[n, …, d] with each pair of values rotated; sines and cosines [n, d / 2]."""
    rows = (len(x), *(1,) * (x.ndim - 2), sines.shape[-1])
    sin, cos = (-sines if pairing.startswith("reversed") else sines).reshape(rows), cosines.reshape(rows)
    if pairing.endswith("halves"):
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1)
    a, b = x[..., ::2], x[..., 1::2]
    return np.stack((a * cos - b * sin, b * cos + a * sin), axis=-1).reshape(x.shape)


class Rotation(Operation, name="rope", saves_inputs=False):
    """Pairs of values rotated by angles that grow with the position."""

    rope: Rope | Unknown
    pairing: Pairing | Unknown = "halves"
    detail: ClassVar[str] = ""  # what it has beside its frequencies

    def describe(self) -> str:
        if isinstance(self.rope, Unknown):
            return "rotary position embedding"
        pairing = f", {self.pairing}" if isinstance(self.pairing, str) and self.pairing != "halves" else ""
        return self.rope.describe() + self.detail + pairing

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, rope = inputs[0], require(self.rope)
        if x.shape[-1] > 1:
            return self.turn(x, self.find_angles(run, rope, x.shape[-1], *inputs[1:]))
        # Of one value, the reference makes both halves, and two equal values, which count twice in a product of a
        # query and a key.
        turned = self.turn(np.concatenate((x, x), axis=-1), self.find_angles(run, rope, 2, *inputs[1:]))
        return turned[..., :1] * np.float32(sqrt(2))

    def find_angles(self, run: Pass, rope: Rope, d: int, *others: Array) -> Array:
        """[n, d / 2]."""
        raise NotImplementedError(self.label)

    def turn(self, x: Array, angles: Array) -> Array:
        factor = require(self.rope).attention_factor
        sines, cosines = ((wave(angles) * factor).astype(np.float32) for wave in (np.sin, np.cos))
        return turn_pairs(x, sines, cosines, require(self.pairing))


class Rotary(Rotation):
    """Rotates with the position in the text. Source: arXiv:2104.09864."""

    stride: Size = 1  # positions from one row to the next

    def find_positions(self, run: Pass, *others: Array) -> Array:
        return run.positions * int(self.stride)

    def find_angles(self, run: Pass, rope: Rope, d: int, *others: Array) -> Array:
        positions = self.find_positions(run, *others)
        return np.outer(positions, rope.frequencies(d, int(positions.max(initial=0)) + 1))


class RotaryAfter(Rotary):
    """Positions go on after those of the rows of the second input."""

    def find_positions(self, run: Pass, *others: Array) -> Array:
        return run.positions + len(others[0])


class RotaryBySquare(Rotary, detail=", by the square of the position"):
    """Angles grow with the square of the position."""

    def find_angles(self, run: Pass, rope: Rope, d: int, *others: Array) -> Array:
        return np.outer(run.positions**2, rope.frequencies(d, int(run.positions.max(initial=0)) + 1))


class RotaryOfFirstHead(Rotary, detail=", of one head"):
    """Only the first head is rotated."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        return np.concatenate((super().compute(run, [x[:, :1]], weights, shape), x[:, 1:]), axis=1)


def turn_halves(x: Array, angles: Array, factor: float) -> Array:
    """[n, heads, d] with each value and the one half the axis apart, both with their own angles [n, d]."""
    angles, half = angles[:, None], x.shape[-1] // 2
    turned = x * np.cos(angles) + np.concatenate((-x[..., half:], x[..., :half]), axis=-1) * np.sin(angles)
    return (turned * factor).astype(np.float32)


class RotaryCut(Rotary):
    """The first angles of `cut_from` dimensions, taken twice, if the values have another number of them; in halves."""

    cut_from: Size = 0

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, rope, d = inputs[0], require(self.rope), int(self.cut_from)
        if d == x.shape[-1]:
            return super().compute(run, inputs, weights, shape)
        angles = np.tile(self.find_angles(run, rope, d), 2)[:, : x.shape[-1]]
        return turn_halves(x, angles, rope.attention_factor)


def rope(
    x: Data,
    settings: Rope | Unknown = Unknown("rope"),  # noqa: B008 it is immutable
    pairing: Pairing | Unknown = "halves",
    stride: Size = 1,
    after: Data | None = None,
) -> Data:
    """Rotary positions on the last axis. `stride`: positions from one row to the next. `after`: the rows before the
    first of x.
    """
    if after is not None:
        return Data(RotaryAfter(settings, pairing), (x, after), x.shape)
    return Data(Rotary(settings, pairing, stride), (x,), x.shape)


def rope_by_square(x: Data, settings: Rope | Unknown, pairing: Pairing) -> Data:
    return Data(RotaryBySquare(settings, pairing), (x,), x.shape)


def rope_first_head(x: Data, settings: Rope | Unknown, pairing: Pairing) -> Data:
    """Rotary positions on the last axis of the first head of [n, heads, d]."""
    return Data(RotaryOfFirstHead(settings, pairing), (x,), x.shape)


def rope_cut(x: Data, settings: Rope | Unknown, d: Size) -> Data:
    """Rotary positions on the last axis, with the first of the angles of d dimensions."""
    return Data(RotaryCut(settings, cut_from=d), (x,), x.shape)


class RotaryAt(Rotation):
    """Rotates with several positions of each row, the second input [n, axes]."""

    axes: Axes | Unknown = Axes((1, 1), "restarted")

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        # One value cannot be shared by several axes: the reference is left with no values, whose product is 0.
        if inputs[0].shape[-1] == 1 and require(self.axes).divides_values:
            return np.zeros_like(inputs[0])
        return super().compute(run, inputs, weights, shape)

    def find_angles(self, run: Pass, rope: Rope, d: int, *others: Array) -> Array:
        angles: Array = require(self.axes).find_angles(others[0], rope, d, int(run.positions.max(initial=0)) + 1)
        return angles


class RotaryApart(Rotation):
    """Each position has its own part of the values, whose pairs are inside it; the first part has the last position.

    Source: Gemma4VisionRotaryEmbedding of the reference.
    """

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x, places), rope = inputs, require(self.rope)
        n, d = places.shape[1], x.shape[-1]
        angles = (places[:, None, ::-1, None] * rope.frequencies(d // n, 0)).astype(np.float32)
        sines, cosines = np.sin(angles), np.cos(angles)
        a, b = np.split(x.reshape(*x.shape[:-1], n, -1), 2, axis=-1)
        return np.concatenate((a * cosines - b * sines, b * cosines + a * sines), axis=-1).reshape(x.shape)


class RotaryAcrossHalves(RotaryAt):
    """Each position has as many values of a head as twice its section, so that the two values of a pair may rotate with
    different ones.
    """

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x, places), rope, sections = inputs, require(self.rope), require(self.axes).sections
        positions = places[:, np.repeat(np.arange(len(sections)), np.array(sections) * 2)]
        frequencies = rope.frequencies(x.shape[-1], int(places.max(initial=0)) + 1)
        return turn_halves(x, positions * np.tile(frequencies, 2), rope.attention_factor)


def rope_at(
    x: Data, places: Data, settings: Rope | Unknown, axes: Axes | Unknown, pairing: Pairing | Unknown = "halves"
) -> Data:
    return Data(RotaryAt(settings, pairing, axes), (x, places), x.shape)


def rope_apart(x: Data, places: Data, settings: Rope | Unknown) -> Data:
    """Rotary positions on the last axis, of which each position has a part; `places`: [n, axes]."""
    return Data(RotaryApart(settings), (x, places), x.shape)


def rope_across_halves(x: Data, places: Data, settings: Rope | Unknown, axes: Axes | Unknown) -> Data:
    """Rotary positions on the last axis, whose sections each have as many values in both halves together."""
    return Data(RotaryAcrossHalves(settings, axes=axes), (x, places), x.shape)


@make_step("rope", phrase="rotary position embedding, sines and cosines from a table", saves_inputs=False)
def rope_from(x: Array, sinusoids: Array, pairing: Pairing = "interleaved") -> Array:
    """Rotary positions on the last axis, whose sines, then cosines, are an input: [n, d]."""
    is_single = x.shape[-1] == 1
    sines, cosines = np.split(sinusoids, 2, axis=-1)
    turned = turn_pairs(np.concatenate((x, x), axis=-1) if is_single else x, sines, cosines, pairing)
    return turned[..., :1] * np.float32(sqrt(2)) if is_single else turned
