"""Positions as angles: rotary embeddings, sinusoids and learned angles."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log, log2, pi, sqrt
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from paramcount.errors import ParamcountError, count_noun
from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.operation import Array, Operation, Pass, Shape, Unknown, is_known, np, require


class Rope(NamedTuple):
    """How positions become angles. Source: modeling_rope_utils.py of the reference."""

    base: float
    kind: str = "default"  # default | linear | dynamic | ntk steps | yarn | longrope | llama3 | proportional
    factor: float = 1.0
    attention_factor: float = 1.0  # times cos and sin
    original_positions: int = 0  # context length before scaling
    low: float = 0.0  # llama3: low_freq_factor; yarn: beta_slow
    high: float = 0.0  # llama3: high_freq_factor; yarn: beta_fast
    truncate: bool = True  # yarn
    short: tuple[float, ...] = ()  # longrope: factors up to the original context length
    long: tuple[float, ...] = ()  # and beyond
    share: float = 1.0  # proportional: the part of the dimensions that is rotated
    is_odd: bool = False  # one dimension less has angles of its own: the last one fills up the last pair

    def describe(self) -> str:
        names = {
            "linear": "linear scaling", "dynamic": "dynamic NTK scaling", "yarn": "YaRN scaling",
            "ntk steps": "dynamic NTK scaling in steps", "longrope": "LongRoPE scaling", "llama3": "Llama 3 scaling",
            "proportional": "proportional scaling",
        }  # fmt: skip
        text = f"rotary, base {self.base:,.10g}"
        return text if self.kind == "default" else f"{text}, {names.get(self.kind, self.kind)}"

    def frequencies(self, d: int, n_tokens: int) -> Array:
        """Radians per position of each of the d/2 pairs, float64. `n_tokens`: length of the text so far."""
        d -= self.is_odd
        base, exponents = self.base, np.arange(0, d, 2) / d
        if self.kind == "dynamic":
            n_tokens = max(n_tokens, self.original_positions)
            base *= (self.factor * n_tokens / self.original_positions - (self.factor - 1)) ** (d / (d - 2))
        if self.kind == "ntk steps":
            steps = ceil(log2(max(n_tokens, self.original_positions) / self.original_positions) + 1)
            base *= (2**steps - 1) ** (d / (d - 2))
        plain: Array = 1 / base**exponents
        if self.kind in ("default", "dynamic", "ntk steps"):
            return plain
        if self.kind == "linear":
            return plain / self.factor
        if self.kind == "proportional":
            rotated = int(self.share * d // 2)
            return np.where(np.arange(d // 2) < rotated, plain, 0) / self.factor
        if self.kind == "longrope":
            factors = self.long if n_tokens > self.original_positions else self.short
            if len(factors) not in (1, len(plain)):
                problem = f"LongRoPE with {count_noun(len(factors), 'factor')} for {count_noun(len(plain), 'pair')}"
                raise ParamcountError(problem, expected="one factor, or one for each pair of values")
            return plain / np.array(factors)
        if self.kind == "llama3":
            wavelength = 2 * pi / plain
            smooth = (self.original_positions / wavelength - self.low) / (self.high - self.low)
            between = (1 - smooth) * plain / self.factor + smooth * plain
            scaled = np.where(wavelength > self.original_positions / self.low, plain / self.factor, between)
            return np.where(wavelength < self.original_positions / self.high, plain, scaled)
        if self.kind == "yarn":
            if base == 1:
                raise ParamcountError("YaRN with a base of 1", expected="another base: it divides by its logarithm")
            low, high = (
                d * log(self.original_positions / (turns * 2 * pi)) / (2 * log(base)) for turns in (self.high, self.low)
            )
            if self.truncate:
                low, high = int(np.floor(low)), int(np.ceil(high))
            low, high = max(low, 0), min(high, d - 1)
            ramp = np.clip((np.arange(d // 2) - low) / (high - low if high != low else 0.001), 0, 1)
            return plain / self.factor * ramp + plain * (1 - ramp)
        raise ParamcountError(f"rope_type = {self.kind} is not supported")


# Which values form a pair: those half the axis apart, or neighbours; reversed: rotated the other way.
Pairing: TypeAlias = Literal["halves", "interleaved", "reversed halves", "reversed interleaved"]


class Axes(NamedTuple):
    """Which pairs of values rotate with which position, if there are several: time, row and column.

    "apart": each section has its own part of the values, whose pairs are inside it; the first rotates with the last
    position. "sections": the first pairs with the first position and so on; "interleaved": in turns, as long as there
    are pairs of each section, the rest with the first; "restarted": sections, whose frequencies begin again;
    "alternating": sections, whose frequencies are taken in turns. "in turns": each frequency with the last position,
    then with the one before. "in turns, time last": pairs in turns with row and column, the last ones with time, of
    which the last section has the number. "across halves": each position has as many values of a head as twice its
    section, so that the two values of a pair may rotate with different ones.
    """

    sections: tuple[int, ...]  # pairs of each; of the two last kinds, only their number matters
    order: Literal[
        "sections", "interleaved", "restarted", "alternating", "apart", "in turns", "in turns, time last",
        "across halves",
    ]  # fmt: skip

    @property
    def divides_values(self) -> bool:
        """Whether each axis has frequencies for its share of the values, rather than some of those of all values."""
        return self.order in ("in turns", "restarted", "apart")

    def find_angles(self, places: Array, rope: Rope, d: int, n_tokens: int) -> Array:
        """Angles [n, d / 2] of places [n, axes]."""
        half, n = d // 2, len(self.sections)
        if self.order == "in turns":
            return (places[:, None, ::-1] * rope.frequencies(d // n, n_tokens)[:, None]).reshape(len(places), -1)
        if self.order == "apart":
            places = places[:, ::-1]
        if self.divides_values:
            frequencies = np.tile(rope.frequencies(d // n, n_tokens), n)
        else:
            frequencies = rope.frequencies(d, n_tokens)
        if self.order == "alternating":
            frequencies = np.concatenate([frequencies[i::n] for i in range(n)])
        if self.order == "in turns, time last":
            n_placed = half - self.sections[-1]
            axes = np.where(np.arange(half) < n_placed, 1 + np.arange(half) % 2, 0)
        elif self.order == "interleaved":
            axes = np.zeros(half, np.int64)
            for i in range(1, n):
                axes[i : n * self.sections[i] : n] = i
        else:
            axes = np.repeat(np.arange(n), self.sections if self.order == "sections" else half // n)
        return places[:, axes] * frequencies


class Rotary(Operation):
    """Rotates pairs of values by angles that grow with the position. Source: arXiv:2104.09864."""

    saves_inputs: ClassVar[bool] = False
    name: ClassVar[str] = "rope"
    rope: Rope | Unknown | None  # None: its second input holds the sines, then the cosines
    pairing: Pairing | Unknown = "halves"
    axes: Axes | Unknown | None = None  # its second input holds several positions for each row
    stride: Size = 1  # positions from one row to the next
    power: int = 1  # angles grow with this power of the position
    cut_from: Size | None = None  # in halves: the first angles of so many dimensions, taken twice
    continues: bool = False  # positions go on after those of the rows of a second input
    first_heads: Size | None = None  # only so many of the heads are rotated

    def describe(self) -> str:
        if isinstance(self.rope, Unknown):
            return "rotary position embedding"
        if self.rope is None:
            return "rotary position embedding, sines and cosines from a table"
        squared = ", by the square of the position" if self.power == 2 else ""
        if self.first_heads is not None:
            squared += f", of {'one head' if self.first_heads == 1 else f'{self.first_heads} heads'}"
        return (
            self.rope.describe()
            + squared
            + (f", {self.pairing}" if isinstance(self.pairing, str) and self.pairing != "halves" else "")
        )

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, *table = inputs
        if self.first_heads is not None:
            n = int(self.first_heads)
            operation = Rotary(self.rope, self.pairing)
            return np.concatenate((operation.compute(run, [x[:, :n]], weights, shape), x[:, n:]), axis=1)
        rope: Rope | None = require(self.rope)
        if rope is not None and self.cut_from is not None and int(self.cut_from) != x.shape[-1]:
            return self.rotate_cut(x, rope, run.positions)
        axes = require(self.axes)
        if axes is not None and axes.order == "apart" and rope is not None:
            return self.rotate_apart(x, axes, rope, table[0])
        if axes is not None and axes.order == "across halves" and rope is not None:
            return self.rotate_across(x, axes, rope, table[0])
        if x.shape[-1] == 1:
            return self.rotate_single(x, run, *table)
        d, rows = x.shape[-1], (len(x), *(1,) * (x.ndim - 2), x.shape[-1] // 2)
        if rope is None:
            sin, cos = (half.reshape(*rows[:-1], -1) for half in np.split(table[0], 2, axis=-1))
        else:
            positions = run.positions * int(self.stride) + (len(table[0]) if self.continues else 0)
            n_tokens = int(positions.max(initial=0)) + 1
            if axes is None:
                angles = np.outer(positions**self.power, rope.frequencies(d, n_tokens)).reshape(rows)
            else:
                angles = axes.find_angles(table[0], rope, d, n_tokens).reshape(rows)
            cos = (np.cos(angles) * rope.attention_factor).astype(np.float32)
            sin = (np.sin(angles) * rope.attention_factor).astype(np.float32)
        if require(self.pairing) == "reversed interleaved":
            sin = -sin
        if self.pairing == "halves":
            a, b = x[..., : d // 2], x[..., d // 2 :]
            return np.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1)
        if self.pairing == "reversed halves":
            a, b = x[..., : d // 2], x[..., d // 2 :]
            return np.concatenate((a * cos + b * sin, b * cos - a * sin), axis=-1)
        a, b = x[..., ::2], x[..., 1::2]
        return np.stack((a * cos - b * sin, b * cos + a * sin), axis=-1).reshape(x.shape)

    def rotate_single(self, x: Array, run: Pass, *table: Array) -> Array:
        """Heads of one value: the reference takes that as both halves and gets two equal values, which count twice in a
        product of a query and a key. If the value is to be shared by several axes, none has a frequency: the reference
        is left with no values, whose product is 0."""
        axes = require(self.axes)
        if axes is not None and axes.divides_values:
            return np.zeros_like(x)
        pair = Rotary(self.rope, self.pairing, self.axes, self.stride, self.power, continues=self.continues)
        turned = pair.compute(run, [np.concatenate((x, x), axis=-1), *table], (), (*x.shape[:-1], 2))
        return turned[..., :1] * np.float32(sqrt(2))

    def rotate_apart(self, x: Array, axes: Axes, rope: Rope, places: Array) -> Array:
        n = len(axes.sections)
        angles = axes.find_angles(places, rope, x.shape[-1], 0).reshape(len(x), 1, n, -1).astype(np.float32)
        a, b = np.split(x.reshape(*x.shape[:-1], n, -1), 2, axis=-1)
        cos, sin = np.cos(angles), np.sin(angles)
        return np.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1).reshape(x.shape)

    def rotate_across(self, x: Array, axes: Axes, rope: Rope, places: Array) -> Array:
        d = x.shape[-1]
        positions = places[:, np.repeat(np.arange(len(axes.sections)), np.array(axes.sections) * 2)]
        angles = (positions * np.tile(rope.frequencies(d, int(places.max(initial=0)) + 1), 2))[:, None]
        y = x * np.cos(angles) + np.concatenate((-x[..., d // 2 :], x[..., : d // 2]), axis=-1) * np.sin(angles)
        return (y * rope.attention_factor).astype(np.float32)

    def rotate_cut(self, x: Array, rope: Rope, positions: Array) -> Array:
        d, n = x.shape[-1], int(positions[-1]) + 1
        angles = np.tile(np.outer(positions, rope.frequencies(int(require(self.cut_from)), n)), 2)[:, None, :d]
        y = x * np.cos(angles) + np.concatenate((-x[..., d // 2 :], x[..., : d // 2]), axis=-1) * np.sin(angles)
        return (y * rope.attention_factor).astype(np.float32)


def rope(
    x: Data,
    settings: Rope | Unknown = Unknown("rope"),  # noqa: B008 it is immutable
    pairing: Pairing | Unknown = "halves",
    stride: Size = 1,
    cut_from: Size | None = None,
    power: int = 1,
    after: Data | None = None,
    first_heads: Size | None = None,
) -> Data:
    """Rotary positions on the last axis. `stride`: positions from one row to the next. `cut_from`, `power`,
    `first_heads`: as in `Rotary`. `after`: the rows before the first of x."""
    operation = Rotary(
        settings, pairing, stride=stride, power=power, cut_from=cut_from, continues=after is not None,
        first_heads=first_heads,
    )  # fmt: skip
    return Data(operation, (x,) if after is None else (x, after), x.shape)


def rope_at(
    x: Data, places: Data, settings: Rope | Unknown, axes: Axes | Unknown, pairing: Pairing | Unknown = "halves"
) -> Data:
    """Rotary positions on the last axis; `places`: several positions for each row, [n, axes]."""
    return Data(Rotary(settings, pairing, axes), (x, places), x.shape)


def rope_from(x: Data, sinusoids: Data, pairing: Pairing = "interleaved") -> Data:
    """Rotary positions on the last axis, whose sines and cosines are an input: [n, d]."""
    return Data(Rotary(None, pairing), (x, sinusoids), x.shape)


class Sinusoids(Operation):
    """A fixed vector per position, or per distance: sines and cosines of angles that grow with it.

    Source: arXiv:1706.03762, section 3.5; of distances, arXiv:1901.02860, section 3.3.
    """

    saves_inputs: ClassVar[bool] = False
    name: ClassVar[str] = "sinusoidal positions"
    # All sines before all cosines, or one after the other, or all cosines first.
    pairing: Literal["halves", "interleaved", "cosines first"] = "halves"
    slowest: Literal["below base", "base"] = "below base"  # the last angle is position / base, or one step before
    offset: int | Unknown = 0  # of the first position
    base: float | Unknown = 10_000.0  # of no meaning if the frequencies, one over its powers, are stored
    # Of distances, the first row is for that from the last of n tokens to a token in front of the first: n. The last
    # row is for 1 - n, or for 0 if the distances are "backward". "one position": the offset. "columns and rows": of the
    # place of each patch, [n, 2]; half of the vector is for its column, the other half for its row.
    # "time": of the values of the input, [n, 1], times the scale.
    of: Literal["positions", "distances", "backward distances", "one position", "columns and rows", "time"] = (
        "positions"
    )
    farthest: int | Unknown = 0  # larger distances are taken for this one, unless it is 0 or less
    rope: Rope | Unknown | None = None  # its frequencies, times exp of stored values, instead of powers of the base
    scale: float | Unknown = 1.0  # of the time
    counts_front: bool = False  # rows in front of the text have the first positions

    def describe(self) -> str:
        if self.rope is not None:
            text = "" if isinstance(self.rope, Unknown) else f", {self.rope.describe()}"
            return f"sines and cosines for rotary position embedding{text}, frequencies × exp of stored values"
        names = {"positions": "position", "columns and rows": "column and row", "time": "time"}
        what = names.get(self.of, "distance")
        if self.of == "one position":
            what = f"position {self.offset:,}" if is_known(self.offset) else "same position for all tokens"
        if isinstance(self.base, Unknown):
            return f"sines and cosines of the {what}"
        return f"sines and cosines of the {what}, base {self.base:,.10g}"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        d, n = int(shape[-1]), len(inputs[0])
        if self.rope is not None:
            return self.compute_angles(run, require(self.rope), d, weights[0])
        if self.of == "columns and rows":
            frequencies = require(self.base) ** -(np.arange(d // 4) / (d // 4))
            angles = inputs[0][:, ::-1, None] * frequencies
            return np.concatenate((np.sin(angles), np.cos(angles)), axis=-1).reshape(n, d).astype(np.float32)
        half = d // 2
        steps = half - 1 if self.slowest == "base" else d / 2
        count = half if self.slowest == "base" else d - half
        if self.of == "positions":
            positions = run.positions + require(self.offset)
            if self.counts_front:
                positions = positions + run.state.setdefault("front", np.maximum(-positions[0], 0))
        elif self.of == "one position":
            positions = np.array([require(self.offset)])
        elif self.of == "time":
            positions = inputs[0][:, 0] * require(self.scale)
        else:
            positions = np.arange(n, -1 if self.of == "backward distances" else -n, -1)
            far = require(self.farthest)
            positions = np.clip(positions, -far, far) if far > 0 else positions
        frequencies = weights[0] if weights else require(self.base) ** -(np.arange(count) / steps)
        angles = np.outer(positions, frequencies)
        y = np.zeros((len(angles), d), np.float32)
        sines, cosines = np.sin(angles), np.cos(angles)[:, :half]
        if self.pairing == "interleaved":
            y[:, ::2], y[:, 1::2] = sines, cosines
        elif self.pairing == "cosines first":
            y[:, : len(cosines[0])], y[:, len(cosines[0]) : len(cosines[0]) + count] = cosines, sines
        else:
            y[:, :count], y[:, count : count + half] = sines, cosines
        return y

    def compute_angles(self, run: Pass, rope: Rope, d: int, logarithms: Array) -> Array:
        frequencies = rope.frequencies(d, int(run.positions.max(initial=0)) + 1) * np.exp(logarithms)
        angles = np.outer(run.positions, frequencies)
        return (np.concatenate((np.sin(angles), np.cos(angles)), axis=-1) * rope.attention_factor).astype(np.float32)


def sinusoids(
    x: Data,
    pairing: Literal["halves", "interleaved", "cosines first"] = "halves",
    *,
    slowest: Literal["below base", "base"] = "below base",
    offset: int | Unknown = 0,
    counts_front: bool = False,
) -> Data:
    """The fixed position vectors of x, [n, d]. `counts_front`: as in `Sinusoids`."""
    return Data(Sinusoids(pairing, slowest, offset, counts_front=counts_front), (x,), x.shape)


def stored_sinusoids(x: Data, name: str, d: Size, n_frequencies: Size, base: float | Unknown) -> Data:
    """Sines and cosines of positions with stored frequencies, one over the powers of a base: [n, d]."""
    weight = Weight(name, "position", (n_frequencies,), role="buffer")
    return Data(Sinusoids(base=base), (x,), (x.shape[0], d), (weight,))


def learned_angles(x: Data, name: str, d: Size, n_frequencies: Size, settings: Rope | Unknown) -> Data:
    """Sines and cosines of rotary positions, whose frequencies are those of the settings times exp of stored values:
    [n, d].
    """
    weight = Weight(name, "position", (n_frequencies,), role="buffer")
    return Data(Sinusoids(rope=settings), (x,), (x.shape[0], d), (weight,))


def fixed_sinusoids(x: Data, position: int | Unknown) -> Data:
    """The vector of one position, [1, d], whatever the tokens of x are."""
    return Data(Sinusoids("cosines first", offset=position, of="one position"), (x,), (1, x.shape[-1]))


def grid_sinusoids(x: Data, places: Data) -> Data:
    """The fixed vectors of the columns and rows of patches x [n, d], whose places are [n, 2]."""
    return Data(Sinusoids(of="columns and rows"), (places,), x.shape)


def time_sinusoids(time: Data, d: Size, base: float | Unknown, scale: float | Unknown) -> Data:
    """The fixed vectors of moments [n, 1], [n, d]: sines, then cosines, of frequencies from `scale` to scale / base."""
    operation = Sinusoids(slowest="base", base=base, of="time", scale=scale)
    return Data(operation, (time,), (*time.shape[:1], d))


def distance_sinusoids(
    x: Data,
    *,
    causal: bool,
    farthest: int | Unknown = 0,
    slowest: Literal["below base", "base"] = "below base",
    pairing: Literal["halves", "interleaved"] = "halves",
) -> Data:
    """The fixed vectors of all distances between tokens of x, [distances, d]; `index_distances` says which is whose."""
    of: Literal["distances", "backward distances"] = "backward distances" if causal else "distances"
    return Data(Sinusoids(pairing, slowest, of=of, farthest=farthest), (x,), ("distances", x.shape[-1]))
