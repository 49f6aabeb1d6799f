"""Fixed vectors of positions and distances: sines and cosines of angles that grow with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from paramcount.flow.graph import Data, Size, Weight, make_step
from paramcount.flow.operation import Array, Operation, Pass, Shape, Unknown, np, require

if TYPE_CHECKING:
    from paramcount.flow.operations.rotary_scaling import Rope

# All sines before all cosines, or one after the other, or all cosines first.
Waves: TypeAlias = Literal["halves", "interleaved", "cosines first"]
Slowest: TypeAlias = Literal["below base", "base"]  # the last angle is position / base, or one step before


def find_wave_frequencies(d: int, base: float, slowest: Slowest) -> Array:
    """The frequencies of the sines of a vector of size d."""
    half = d // 2
    steps, count = (half - 1, half) if slowest == "base" else (d / 2, d - half)
    frequencies: Array = base ** -(np.arange(count) / steps)
    return frequencies


def lay_out_waves(angles: Array, d: int, waves: Waves) -> Array:
    """Angles [n, frequencies] to vectors [n, d]."""
    y, half, count = np.zeros((len(angles), d), np.float32), d // 2, angles.shape[1]
    sines, cosines = np.sin(angles), np.cos(angles)[:, :half]
    if waves == "interleaved":
        y[:, ::2], y[:, 1::2] = sines, cosines
    elif waves == "cosines first":
        y[:, : cosines.shape[1]], y[:, cosines.shape[1] : cosines.shape[1] + count] = cosines, sines
    else:
        y[:, :count], y[:, count : count + half] = sines, cosines
    return y


class FixedVectors(Operation, name="sinusoidal positions", saves_inputs=False):
    """A fixed vector per position, or per distance. Source: arXiv:1706.03762, section 3.5."""

    phrase: ClassVar[str] = "sines and cosines of the position, base 10,000"


class Sinusoids(FixedVectors):
    """Of the position of each token."""

    waves: Waves = "halves"
    slowest: Slowest = "below base"
    offset: int | Unknown = 0  # of the first position

    def find_positions(self, run: Pass, inputs: Sequence[Array]) -> Array:
        return run.positions + require(self.offset)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        positions, d = self.find_positions(run, inputs), int(shape[-1])
        return lay_out_waves(np.outer(positions, find_wave_frequencies(d, 10_000.0, self.slowest)), d, self.waves)


class SinusoidsFromFront(Sinusoids):
    """The same, but rows in front of the text have the first positions."""

    def find_positions(self, run: Pass, inputs: Sequence[Array]) -> Array:
        positions = super().find_positions(run, inputs)
        return positions + run.state.setdefault("front", np.maximum(-positions[0], 0))


class ConstantSinusoids(Sinusoids, phrase="sines and cosines of the position {offset:,}, base 10,000"):
    """Of one position, the offset, whatever the tokens are."""

    plain: ClassVar[str] = "sines and cosines of the same position for all tokens, base 10,000"

    def find_positions(self, run: Pass, inputs: Sequence[Array]) -> Array:
        return np.array([require(self.offset)])


class DistanceSinusoids(Sinusoids, phrase="sines and cosines of the distance, base 10,000"):
    """Of all distances: the first row is for that from the last of n tokens to a token in front of the first, n, and
    the last one for 1 - n. Source: arXiv:1901.02860, section 3.3.
    """

    farthest: int | Unknown = 0  # larger distances are taken for this one, unless it is 0 or less

    def find_positions(self, run: Pass, inputs: Sequence[Array]) -> Array:
        distances, far = np.arange(len(inputs[0]), self.find_end(len(inputs[0])), -1), require(self.farthest)
        return np.clip(distances, -far, far) if far > 0 else distances

    def find_end(self, n: int) -> int:
        return -n


class CausalDistanceSinusoids(DistanceSinusoids):
    """The same up to the distance 0."""

    def find_end(self, n: int) -> int:
        return -1


def sinusoids(x: Data, waves: Waves = "halves", *, slowest: Slowest = "below base", offset: int | Unknown = 0) -> Data:
    """The fixed position vectors of x, [n, d]."""
    return Data(Sinusoids(waves, slowest, offset), (x,), x.shape)


def sinusoids_from_front(x: Data, waves: Waves, slowest: Slowest) -> Data:
    return Data(SinusoidsFromFront(waves, slowest), (x,), x.shape)


def fixed_sinusoids(x: Data, position: int | Unknown) -> Data:
    return Data(ConstantSinusoids("cosines first", offset=position), (x,), (1, x.shape[-1]))


def distance_sinusoids(
    x: Data,
    *,
    causal: bool,
    farthest: int | Unknown = 0,
    slowest: Slowest = "below base",
    waves: Waves = "halves",
) -> Data:
    """The fixed vectors of all distances between tokens of x, [distances, d]; `index_distances` says which is whose."""
    kind = CausalDistanceSinusoids if causal else DistanceSinusoids
    return Data(kind(waves, slowest, farthest=farthest), (x,), ("distances", x.shape[-1]))


class GridSinusoids(FixedVectors, phrase="sines and cosines of the column and row, base 10,000"):
    """Of the place of each patch, [n, 2]: half of the vector is for its column, the other half for its row."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (places,), quarter = inputs, int(shape[-1]) // 4
        angles = places[:, ::-1, None] * find_wave_frequencies(2 * quarter, 10_000.0, "below base")
        waves = np.concatenate((np.sin(angles), np.cos(angles)), axis=-1)
        return waves.reshape(len(places), -1).astype(np.float32)


def grid_sinusoids(x: Data, places: Data) -> Data:
    """The fixed vectors of the columns and rows of patches x [n, d], whose places are [n, 2]."""
    return Data(GridSinusoids(), (places,), x.shape)


class StoredSinusoids(FixedVectors, phrase="sines and cosines of the position, base {base:,.10g}"):
    """Of the position of each token, with stored frequencies, one over the powers of a base."""

    plain: ClassVar[str] = "sines and cosines of the position"
    base: float | Unknown

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return lay_out_waves(np.outer(run.positions, weights[0]), int(shape[-1]), "halves")


@make_step(
    "sinusoidal positions",
    FixedVectors,
    phrase="sines and cosines of the time, base {base:,.10g}",
    plain="sines and cosines of the time",
    shape=lambda time, d, base, scale: (*time.shape[:1], d),
)
def time_sinusoids(time: Array, d: int, base: float | Unknown, scale: float | Unknown) -> Array:
    """The fixed vectors of moments [n, 1], [n, d]: sines, then cosines, of frequencies from `scale` to scale / base."""
    frequencies = find_wave_frequencies(int(d), require(base), "base")
    return lay_out_waves(np.outer(time[:, 0] * require(scale), frequencies), int(d), "halves")


def stored_sinusoids(x: Data, name: str, d: Size, n_frequencies: Size, base: float | Unknown) -> Data:
    """Sines and cosines of positions with stored frequencies, one over the powers of a base: [n, d]."""
    weight = Weight(name, "position", (n_frequencies,), role="buffer")
    return Data(StoredSinusoids(base), (x,), (x.shape[0], d), (weight,))


class LearnedAngles(FixedVectors):
    """Sines and cosines of rotary positions, whose frequencies are those of the settings times exp of stored values."""

    rope: Rope | Unknown

    def describe(self) -> str:
        text = "" if isinstance(self.rope, Unknown) else f", {self.rope.describe()}"
        return f"sines and cosines for rotary position embedding{text}, frequencies × exp of stored values"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        rope, n_tokens = require(self.rope), int(run.positions.max(initial=0)) + 1
        angles = np.outer(run.positions, rope.frequencies(int(shape[-1]), n_tokens) * np.exp(weights[0]))
        return (np.concatenate((np.sin(angles), np.cos(angles)), axis=-1) * rope.attention_factor).astype(np.float32)


def learned_angles(x: Data, name: str, d: Size, n_frequencies: Size, settings: Rope | Unknown) -> Data:
    """Sines and cosines of rotary positions with learned frequencies: [n, d]."""
    weight = Weight(name, "position", (n_frequencies,), role="buffer")
    return Data(LearnedAngles(settings), (x,), (x.shape[0], d), (weight,))
