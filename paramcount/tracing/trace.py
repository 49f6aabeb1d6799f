"""The trace of a forward pass as data: every operation in order, with the shapes of its inputs, weights and output."""

from __future__ import annotations

import re
from itertools import product
from math import prod
from typing import Any, NamedTuple, TypeAlias

from paramcount.counting.results import describe_result, render_notebook
from paramcount.flow.caches import LAST_INPUTS, LATENT, STATE
from paramcount.flow.operation import Form

Shape: TypeAlias = tuple[int | str, ...]  # a size that depends on the input is a name: ("patches", 1280)
ROUTED = "routed"  # the number of tokens routed to one expert


class WeightUse(NamedTuple):
    """A weight that an operation uses.

    One that all experts share has no {expert} in its name, and no axis of experts as stored.
    """

    name: str  # tensor name in the checkpoint, with {layer} and {expert}
    shape: Shape  # as multiplied: [in, out] for a matrix, [rows, size] for an embedding
    stored: Shape  # as stored in the checkpoint
    component: str
    tied_to: str | None
    role: str  # parameter | buffer


class Scope(NamedTuple):
    """A repeated block that contains a step: a stack of layers or the experts of a layer."""

    axis: str  # layer | expert
    copies: int
    active: int  # copies that one token uses
    kind: str
    runs: tuple[tuple[int, int], ...]  # (first index, length), in order
    name: str  # module name in the checkpoint, with {layer} or {expert}


class Product(NamedTuple):
    """One matmul: left · right = out."""

    left: Shape
    right: Shape
    out: Shape


class Band(NamedTuple):
    """The attention scores that a mask shows."""

    causal: bool  # no token attends to later tokens
    window: int | None  # the largest distance, None if unlimited


class Step(NamedTuple):
    """One operation."""

    op: str  # the label of its operation: lookup, linear, norm, QKᵀ, mask, softmax, · V, add, silu, …
    text: str  # its name in tables: "queries", "token embedding"
    name: str  # module name in the checkpoint; "" without weights
    inputs: tuple[Shape, ...]
    weights: tuple[WeightUse, ...]
    out: Shape
    heads: int  # number of equal products, one per head
    product: Product | None  # one of them
    part: str  # decoder, encoder, vision, …
    component: str  # of its first weight, such as "qkv.q"; "" without weights
    scopes: tuple[Scope, ...]  # outermost first
    reads: tuple[int, ...]  # indices of the steps whose outputs it reads
    note: str
    form: Form
    reads_only_lengths: bool = False  # of its inputs
    mask: Band | None = None  # if it applies one
    state: tuple[Shape, ...] = ()  # recurrent state, whose size does not depend on the number of tokens
    # Of its matmuls in one layer, for the rows of all experts together; None if a size depends on the input.
    multiply_adds: int | None = 0
    visible_multiply_adds: int | None = 0  # without the pairs of a query and a key that a mask hides
    # Elements of its output in one layer, if it computes them without products; None if a size depends on the input.
    elementwise_operations: int | None = 0
    operation: str = ""  # the name of its class

    def __repr__(self) -> str:
        return describe_result(self, "op", "text", "out")

    @property
    def under(self) -> tuple[Scope, ...]:
        """Same as `scopes`. Deprecated: it goes away in 0.3."""
        return self.scopes

    @property
    def flops(self) -> int | None:
        """FLOPs of its matmuls in all layers, 2 per multiply-add; None if a size depends on the input."""
        return None if self.multiply_adds is None else 2 * self.multiply_adds * count_layers(self)

    @property
    def layers(self) -> tuple[Scope, ...]:
        """The stacks of layers that contain the step, outermost first."""
        return tuple(scope for scope in self.scopes if scope.axis == "layer")

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        plain = self._asdict()
        for name in ("form", "reads_only_lengths", "visible_multiply_adds", "elementwise_operations", "operation"):
            del plain[name]
        plain["weights"] = [weight._asdict() for weight in self.weights]
        plain["under"] = [scope._asdict() for scope in plain.pop("scopes")]
        plain["product"] = self.product and self.product._asdict()
        plain["mask"] = self.mask and self.mask._asdict()
        return plain


class CacheEntry(NamedTuple):
    """The tensors that the layers of one kind cache for later tokens."""

    what: str  # keys and values | compressed KV latent | state | last inputs
    shapes: tuple[Shape, ...]  # per layer and sequence
    layers: int
    grows: bool  # with every token
    kind: str = ""  # cross-attention | sliding window | chunked attention; "" for attention to all earlier tokens

    @property
    def is_state(self) -> bool:
        """Whether it is a recurrent state, whose size does not depend on the number of tokens."""
        return self.what in (STATE, LAST_INPUTS)

    @property
    def is_latent(self) -> bool:
        """Whether it is the compressed latent from which MLA expands keys and values."""
        return self.what == LATENT

    @property
    def elements(self) -> int | None:
        """Elements in all layers, per sequence; None if a size depends on the input."""
        if any(isinstance(n, str) for shape in self.shapes for n in shape):
            return None
        return self.layers * sum(prod(n for n in shape if isinstance(n, int)) for shape in self.shapes)

    def to_dict(self) -> dict[str, Any]:
        """All fields but `kind`, and `elements`, as plain data for JSON."""
        return {k: v for k, v in self._asdict().items() if k != "kind"} | {"elements": self.elements}


def count_layers(step: Step) -> int:
    return prod(scope.copies for scope in step.layers)


def list_indices(scope: Scope) -> list[int]:
    return [first + i for first, n in scope.runs for i in range(n)]


class Trace(NamedTuple):
    """The forward pass of one model in shapes."""

    id: str
    name: str
    tokens: int  # input length
    pad: int | None  # padded length
    batch: int | None  # batch size
    past: int | None  # tokens in the KV cache when decoding
    source: int | None  # encoder input length
    steps: tuple[Step, ...]
    cache: tuple[CacheEntry, ...]  # after this pass
    attention_scores: int | None  # elements per sequence; None if a size depends on the input
    warnings: tuple[str, ...] = ()  # why the trace may not show what the user meant
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return describe_result(self)

    def _repr_html_(self) -> str:
        """The table of `paramcount trace`, for notebooks."""
        return render_notebook("paramcount.tracing.render:build_table", self)

    @property
    def pattern(self) -> int | None:
        """Same as `attention_scores`. Deprecated: it goes away in 0.3."""
        return self.attention_scores

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings and notes together. Deprecated: use `warnings` and `notes`; it goes away in 0.3."""
        return (*self.warnings, *self.notes)

    @property
    def flops(self) -> int | None:
        """FLOPs of all matmuls and convolutions: 2 per multiply-add. None if a size depends on the input, or if
        a step is not described.

        Every expert runs for the tokens routed to it; attention runs over all pairs of a query and a visible or masked
        key, as the reference computes it. The LM head runs for the last position.
        """
        counts = [step.flops for step in self.steps]
        return None if None in counts else sum(n for n in counts if n is not None)

    @property
    def elementwise_operations(self) -> int:
        """Elements that steps without products compute, one operation each, such as norms, activations and softmax.

        Steps whose size depends on an input other than text are not included.
        """
        return sum((step.elementwise_operations or 0) * count_layers(step) for step in self.steps)

    @property
    def flops_by_component(self) -> dict[str, int]:
        """FLOPs per component of the weights, such as "qkv.q"; products of activations alone are "attention"."""
        sums: dict[str, int] = {}
        for step in self.steps:
            if step.flops:
                component = step.component or "attention"
                sums[component] = sums.get(component, 0) + step.flops
        return sums

    @property
    def flops_by_layer(self) -> dict[str, int]:
        """FLOPs of each layer by its module name: "model.layers.0"."""
        sums: dict[str, int] = {}
        for step in self.steps:
            for indices in product(*(list_indices(scope) for scope in step.layers)) if step.layers else ():
                name = step.layers[-1].name.rstrip(".")
                for index in indices:
                    name = name.replace("{layer}", str(index), 1)
                sums[name] = sums.get(name, 0) + 2 * (step.multiply_adds or 0)
        return dict(sorted(sums.items(), key=lambda item: [int(n) for n in re.findall("[0-9]+", item[0])]))

    @property
    def cached_elements(self) -> int | None:
        """Elements in the KV cache and the recurrent states of all layers, per sequence."""
        sizes = [entry.elements for entry in self.cache]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def to_dict(self) -> dict[str, Any]:
        """All fields and `cached_elements` as plain data for JSON."""
        plain = self._asdict() | {"cached_elements": self.cached_elements, "remarks": self.remarks}
        plain |= {"flops": self.flops, "flops_by_component": self.flops_by_component}
        plain["pattern"] = plain.pop("attention_scores")
        return plain | {
            "steps": [step.to_dict() for step in self.steps],
            "cache": [entry.to_dict() for entry in self.cache],
        }
