"""The tensors of a model as its checkpoint stores them, each with its component."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from paramcount.counting.sum_weights import list_weight_flows
from paramcount.flow import Repeat, TensorRow, given, list_rows
from paramcount.sizes import Sizes, inner_configs


def iterate_names(name: str, repeats: Sequence[Repeat]) -> Iterator[str]:
    """A name in each layer and expert.

    >>> list(iterate_names("layers.{layer}.q", [Repeat("layer", 3, 3, runs=((0, 2), (5, 1)))]))
    ['layers.0.q', 'layers.1.q', 'layers.5.q']
    """
    axes = [repeat.axis for repeat in repeats]
    for indices in product(*(repeat.indices for repeat in repeats)):
        concrete = name
        for axis, index in zip(axes, indices):
            concrete = concrete.replace(f"{{{axis}}}", str(index), 1)
        yield concrete


def list_tensors(sizes: Sizes, head: bool = True) -> Iterator[TensorRow]:
    """Every tensor of the declaration, in the order of the forward pass."""
    yield from (row for row in list_weight_rows(sizes, head) if 0 not in row.shape)
    for name, shape, copies in sizes.legacy_buffers():
        layers = Repeat("layer", copies, copies, runs=((0, copies),))
        yield TensorRow(name, shape, "other", "decoder", "legacy_buffer", (layers,))


def list_weight_rows(sizes: Sizes, head: bool = True) -> Iterator[TensorRow]:
    """The tensors that the forward passes read; sizes may be symbols."""
    inner = (getattr(sizes, name) for name in inner_configs(type(sizes)))
    parts = [sizes, *(part for part in inner if part is not None)]
    kept = dict.fromkeys((word for part in parts for word in part.float32), "always")
    kept |= {word: "with float16" for part in parts for word in part.float32_if_float16 if word not in kept}
    for out, part in list_weight_flows(sizes, head):
        for row in list_rows(out, part):
            when = next((when for word, when in kept.items() if f".{word}." in f".{row.name}."), "")
            yield row._replace(float32=when) if when else row


def list_unreachable(sizes: Sizes, head: bool = True) -> Iterator[tuple[TensorRow, str]]:
    """Every tensor that the reference allocates and no forward pass reads, with the reason."""
    for group in sizes.without_document().unreachable(given("tokens", "tokens")):
        if not group.of_lm_head or (head and sizes.has_lm_head):
            for row in list_rows(group.flow):
                if row.is_counted and row.elements:
                    yield row._replace(role="unreachable"), group.reason


def sum_unreachable(sizes: Sizes, head: bool = True) -> dict[str, int]:
    """{reason: parameters} of the tensors that the reference allocates and no forward pass reads."""
    sums: dict[str, int] = {}
    for row, reason in list_unreachable(sizes, head):
        sums[reason] = sums.get(reason, 0) + row.elements
    return sums
