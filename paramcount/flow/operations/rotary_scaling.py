"""How positions become angles: the frequencies of rotary embeddings, and what scales them to longer contexts.

Source: modeling_rope_utils.py of the reference.
"""

from __future__ import annotations

from math import ceil, log, log2, pi
from typing import NamedTuple, TypeAlias

from paramcount.errors import ParamcountError, count_noun
from paramcount.flow.operation import Array, np


def find_frequencies(base: float, d: int) -> Array:
    """Radians per position of each of the d/2 pairs, float64. Source: arXiv:2104.09864."""
    frequencies: Array = 1 / base ** (np.arange(0, d, 2) / d)
    return frequencies


class LinearScaling(NamedTuple):
    """Positions are divided by a factor. Source: arXiv:2306.15595."""

    factor: float = 1.0
    original_positions: int = 0  # context length before scaling

    def find_frequencies(self, base: float, d: int, n_tokens: int) -> Array:
        return find_frequencies(base, d) / self.factor


class DynamicScaling(NamedTuple):
    """NTK-aware scaling, with a base that grows with the text. Source: dynamic NTK of the reference."""

    factor: float = 1.0
    original_positions: int = 0

    def find_frequencies(self, base: float, d: int, n_tokens: int) -> Array:
        n_tokens = max(n_tokens, self.original_positions)
        growth = self.factor * n_tokens / self.original_positions - (self.factor - 1)
        return find_frequencies(base * growth ** (d / (d - 2)), d)


class StepScaling(NamedTuple):
    """NTK-aware scaling, with a base that grows whenever the text is twice as long. Source: modeling_qwen.py of
    Qwen/Qwen-7B.
    """

    original_positions: int

    def find_frequencies(self, base: float, d: int, n_tokens: int) -> Array:
        steps = ceil(log2(max(n_tokens, self.original_positions) / self.original_positions) + 1)
        return find_frequencies(base * (2**steps - 1) ** (d / (d - 2)), d)


class YarnScaling(NamedTuple):
    """Fast frequencies stay, slow ones are divided by the factor, and those between are mixed. Source: arXiv:2309.00071
    §3.2.
    """

    factor: float
    original_positions: int
    low: float  # beta_slow: turns within the original context below which a frequency is slow
    high: float  # beta_fast
    truncate: bool = True

    def find_frequencies(self, base: float, d: int, n_tokens: int) -> Array:
        if base == 1:
            raise ParamcountError("YaRN with a base of 1", expected="another base: it divides by its logarithm")
        low, high = (
            d * log(self.original_positions / (turns * 2 * pi)) / (2 * log(base)) for turns in (self.high, self.low)
        )
        if self.truncate:
            low, high = int(np.floor(low)), int(np.ceil(high))
        low, high, plain = max(low, 0), min(high, d - 1), find_frequencies(base, d)
        ramp = np.clip((np.arange(d // 2) - low) / (high - low if high != low else 0.001), 0, 1)
        scaled: Array = plain / self.factor * ramp + plain * (1 - ramp)
        return scaled


class LongRopeScaling(NamedTuple):
    """Each frequency is divided by its own factor. Source: arXiv:2402.13753."""

    factor: float
    original_positions: int
    short: tuple[float, ...]  # factors up to the original context length
    long: tuple[float, ...]  # and beyond

    def find_frequencies(self, base: float, d: int, n_tokens: int) -> Array:
        factors, plain = self.long if n_tokens > self.original_positions else self.short, find_frequencies(base, d)
        if len(factors) not in (1, len(plain)):
            problem = f"LongRoPE with {count_noun(len(factors), 'factor')} for {count_noun(len(plain), 'pair')}"
            raise ParamcountError(problem, expected="one factor, or one for each pair of values")
        return plain / np.array(factors)


class Llama3Scaling(NamedTuple):
    """Short wavelengths stay, long ones are divided by the factor, and those between are mixed."""

    factor: float
    original_positions: int
    low: float  # low_freq_factor
    high: float  # high_freq_factor

    def find_frequencies(self, base: float, d: int, n_tokens: int) -> Array:
        plain = find_frequencies(base, d)
        wavelength = 2 * pi / plain
        smooth = (self.original_positions / wavelength - self.low) / (self.high - self.low)
        between = (1 - smooth) * plain / self.factor + smooth * plain
        scaled = np.where(wavelength > self.original_positions / self.low, plain / self.factor, between)
        return np.where(wavelength < self.original_positions / self.high, plain, scaled)


class ProportionalScaling(NamedTuple):
    """Only a share of the pairs is rotated; frequencies are those of all."""

    factor: float = 1.0
    share: float = 1.0

    def find_frequencies(self, base: float, d: int, n_tokens: int) -> Array:
        n_rotated = int(self.share * d // 2)
        return np.where(np.arange(d // 2) < n_rotated, find_frequencies(base, d), 0) / self.factor


class OtherScaling(NamedTuple):
    """A rope_type that is not supported."""

    name: str
    factor: float
    original_positions: int

    def find_frequencies(self, base: float, d: int, n_tokens: int) -> Array:
        raise ParamcountError(f"rope_type = {self.name} is not supported")


Scaling: TypeAlias = (
    LinearScaling | DynamicScaling | StepScaling | YarnScaling | LongRopeScaling | Llama3Scaling | ProportionalScaling
    | OtherScaling
)  # fmt: skip

# rope_type and name of each
KINDS: dict[type, tuple[str, str]] = {
    LinearScaling: ("linear", "linear scaling"),
    DynamicScaling: ("dynamic", "dynamic NTK scaling"),
    StepScaling: ("ntk steps", "dynamic NTK scaling in steps"),
    YarnScaling: ("yarn", "YaRN scaling"),
    LongRopeScaling: ("longrope", "LongRoPE scaling"),
    Llama3Scaling: ("llama3", "Llama 3 scaling"),
    ProportionalScaling: ("proportional", "proportional scaling"),
}


class Rope(NamedTuple):
    """How positions become angles."""

    base: float
    scaling: Scaling | None = None
    attention_factor: float = 1.0  # times cos and sin
    is_odd: bool = False  # one dimension less has angles of its own: the last one fills up the last pair

    @property
    def kind(self) -> str:
        """Its rope_type."""
        if isinstance(self.scaling, OtherScaling):
            return self.scaling.name
        return "default" if self.scaling is None else KINDS[type(self.scaling)][0]

    def describe(self) -> str:
        text = f"rotary, base {self.base:,.10g}"
        return text if self.scaling is None else f"{text}, {KINDS.get(type(self.scaling), (self.kind, self.kind))[1]}"

    def frequencies(self, d: int, n_tokens: int) -> Array:
        """Radians per position of each of the d/2 pairs, float64. `n_tokens`: length of the text so far."""
        d -= self.is_odd
        if self.scaling is None:
            return find_frequencies(self.base, d)
        return self.scaling.find_frequencies(self.base, d, n_tokens)
