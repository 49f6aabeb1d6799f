"""What a trace is: every operation of the forward pass in order, with the shapes that meet in it."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple, TypeAlias

Shape: TypeAlias = tuple[int | str, ...]  # a word where nobody says how many: ("patches", 1280)
ROUTED = "routed"  # rows that one expert gets: those of the tokens that chose it


class Held(NamedTuple):
    """A weight that an operation reads."""

    name: str  # as in the checkpoint, with {layer} and {expert}
    shape: Shape  # as it is multiplied: [in, out] of a matrix, [rows, width] of a table
    stored: Shape  # as the checkpoint has it
    component: str
    tied_to: str | None
    role: str  # parameter | buffer


class Under(NamedTuple):
    """A repeat that a step stands in."""

    axis: str  # layer | expert
    copies: int
    active: int  # of them that one token goes through
    kind: str
    runs: tuple[tuple[int, int], ...]  # (first index, how many), in order
    name: str  # of the block, with {layer} or {expert}


class Product(NamedTuple):
    """One matrix product: left · right = out."""

    left: Shape
    right: Shape
    out: Shape


class Mask(NamedTuple):
    """Which tokens one sees."""

    causal: bool  # none that come after it
    window: int | None  # no further than this


class Step(NamedTuple):
    """One operation."""

    op: str  # lookup, linear, norm, QKᵀ, mask, softmax, · V, add, silu, …
    text: str  # what it is called: "queries", "token embedding"
    name: str  # of the module in the checkpoint; "" where it holds nothing
    inputs: tuple[Shape, ...]
    weights: tuple[Held, ...]
    out: Shape
    heads: int  # how many equal products stand side by side
    product: Product | None  # one of them
    part: str  # decoder, encoder, vision, …
    component: str  # of what it holds: "qkv.q"; "" where it holds nothing
    under: tuple[Under, ...]
    reads: tuple[int, ...]  # the steps whose outputs go in
    note: str
    mask: Mask | None = None  # of the operation that is one
    state: tuple[Shape, ...] = ()  # what it keeps for later tokens, however many have passed

    @property
    def layers(self) -> tuple[Under, ...]:
        """The stacks of layers it stands in."""
        return tuple(under for under in self.under if under.axis == "layer")

    def to_dict(self) -> dict[str, Any]:
        plain = self._asdict()
        plain["weights"] = [held._asdict() for held in self.weights]
        plain["under"] = [under._asdict() for under in self.under]
        plain["product"] = self.product and self.product._asdict()
        plain["mask"] = self.mask and self.mask._asdict()
        return plain


class Kept(NamedTuple):
    """What the layers of one kind keep for later tokens."""

    what: str  # keys and values, latents, state
    shapes: tuple[Shape, ...]  # of one layer and one text
    layers: int
    grows: bool  # with every token

    @property
    def elements(self) -> int | None:
        """Numbers of all those layers, for one text; None where a shape is not all numbers."""
        if any(isinstance(n, str) for shape in self.shapes for n in shape):
            return None
        return self.layers * sum(prod(n for n in shape if isinstance(n, int)) for shape in self.shapes)

    def to_dict(self) -> dict[str, Any]:
        return self._asdict() | {"elements": self.elements}


class Trace(NamedTuple):
    """The life of a tensor in one model."""

    id: str
    name: str
    tokens: int  # that go in at once
    pad: int | None
    batch: int | None
    past: int | None  # tokens before these, whose keys and values are cached; None unless decoding
    source: int | None  # tokens that an encoder reads
    steps: tuple[Step, ...]
    cache: tuple[Kept, ...]  # what is kept when these tokens have passed
    pattern: int | None  # numbers in all attention patterns of one text; None where a shape is not all numbers
    warnings: tuple[str, ...] = ()  # the trace may not be what was meant
    notes: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings and notes together. Deprecated: use `warnings` and `notes`; it goes away in 0.3."""
        return (*self.warnings, *self.notes)

    @property
    def cached_elements(self) -> int | None:
        """Numbers that are kept in all layers, for one text."""
        sizes = [kept.elements for kept in self.cache]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data for JSON."""
        plain = self._asdict() | {"cached_elements": self.cached_elements, "remarks": self.remarks}
        return plain | {"steps": [step.to_dict() for step in self.steps], "cache": [kept.to_dict() for kept in self.cache]}
