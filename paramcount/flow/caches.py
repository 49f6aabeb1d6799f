"""What operations keep for later tokens: KV caches, compressed latents and recurrent states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcount.flow.graph import Data, Size, multiply
from paramcount.flow.operations import Attention, Convolve
from paramcount.flow.walk import list_steps

KEYS_AND_VALUES, LATENT, STATE, LAST_INPUTS = "keys and values", "compressed KV latent", "state", "last inputs"
CROSS_ATTENTION, SLIDING_WINDOW = "cross-attention", "sliding window"


class Cached(NamedTuple):
    """The tensors that one operation keeps for later tokens, per sequence."""

    what: str  # keys and values | compressed KV latent | state | last inputs
    shapes: tuple[tuple[Size, ...], ...]  # the first axis may be a stream: "tokens", "source", …
    longest: Size | None = None  # tokens that are kept at most; None for all
    kind: str = ""  # cross-attention | sliding window; "" for attention to all earlier tokens, and for states
    layers: Size = 1
    indices: tuple[Size, ...] = ()  # of the innermost layers that contain it

    @property
    def is_state(self) -> bool:
        """Whether it is a recurrent state, whose size does not depend on the number of tokens."""
        return self.what in (STATE, LAST_INPUTS)

    @property
    def grows(self) -> bool:
        """Whether every further token makes it larger, however long the text is."""
        return not self.is_state and self.shapes[0][0] == "tokens" and self.longest is None


def find_cached(data: Data) -> Cached | None:
    """What an operation keeps for later tokens; None if it keeps nothing."""
    operation = data.operation
    if isinstance(operation, Attention):
        if not operation.cached:
            return None
        q, k, v = data.inputs[:3]
        what = KEYS_AND_VALUES if operation.cached == (k, v) else LATENT
        # A window includes the token that attends.
        longest = None if operation.trimmed_to is None else operation.trimmed_to - 1
        kind = CROSS_ATTENTION if k.shape[0] != q.shape[0] else "" if longest is None else SLIDING_WINDOW
        return Cached(what, tuple(x.shape for x in operation.cached), longest, kind)
    if shapes := operation.state_shapes:
        return Cached(LAST_INPUTS if isinstance(operation, Convolve) else STATE, shapes)
    return None


def list_cached(out: Data, part: str = "decoder") -> Iterator[Cached]:
    """What the operations that `out` depends on keep for later tokens, in execution order."""
    for data, _, repeats, _ in list_steps(out, part):
        cached = find_cached(data)
        if cached is not None:
            layers = [repeat for repeat in repeats if repeat.axis == "layer"]
            indices = layers[-1].indices if layers else ()
            yield cached._replace(layers=multiply(repeat.count for repeat in layers), indices=indices)
