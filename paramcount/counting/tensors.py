"""The tensors of a model as its checkpoint stores them, each with its component."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcount.counting.sum_weights import list_weight_flows
from paramcount.flow import Data, Repeat, given, list_weights

if TYPE_CHECKING:
    from paramcount.sizes import Sizes


class Tensor(NamedTuple):
    """One row of `count.tensors`: a tensor of the checkpoint, or a group that differs only in layer or expert."""

    name: str  # "{layer}" and "{expert}" stand for the indices of `repeats`
    shape: tuple[int, ...]  # as stored; a stacked expert axis comes first
    component: str
    part: str
    role: str  # parameter | buffer | legacy_buffer
    repeats: tuple[Repeat, ...]
    splits: tuple[tuple[str, int], ...]  # (component, size) of each part of a fused matrix
    tied_to: str | None
    stacked: Repeat | None = None  # the experts that share this one tensor

    @property
    def copies(self) -> int:
        """The number of such tensors."""
        n: int = prod(r.count for r in self.repeats)
        return n

    @property
    def elements(self) -> int:
        """Elements in all copies, tied or not."""
        n: int = prod(self.shape) * self.copies
        return n

    @property
    def parameters(self) -> int:
        """Learned parameters in all copies; 0 if tied or a buffer."""
        return self.elements if self.role == "parameter" and self.tied_to is None else 0

    @property
    def active(self) -> int:
        """Active parameters in all copies."""
        per_copy = self.parameters // self.copies if self.copies else 0
        if self.stacked:
            per_copy = per_copy // self.stacked.count * self.stacked.active
        n: int = per_copy * prod(r.active for r in self.repeats)
        return n

    @property
    def note(self) -> str:
        """Why the tensor is not included in the total: tied, MTP, buffer or legacy buffer; empty if it is included."""
        if self.tied_to:
            return "tied"
        if self.part == "mtp":
            return "MTP"
        return "" if self.role == "parameter" else self.role.replace("_", " ")

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        return {
            "name": self.name,
            "shape": list(self.shape),
            "component": self.component,
            "part": self.part,
            "role": self.role,
            "copies": self.copies,
            "parameters": self.parameters,
            "active": self.active,
            "tied_to": self.tied_to,
            "repeats": [repeat_to_dict(repeat) for repeat in self.repeats],
            "splits": [{"component": component, "size": size} for component, size in self.splits],
            "stacked": repeat_to_dict(self.stacked) if self.stacked else None,
        }


def repeat_to_dict(repeat: Repeat) -> dict[str, Any]:
    """A repeat as plain data for JSON: `runs` are [first index, number] pairs."""
    runs = [list(run) for run in repeat.runs]
    return {"axis": repeat.axis, "count": repeat.count, "active": repeat.active, "kind": repeat.label, "runs": runs}


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


def list_tensors(sizes: Sizes, head: bool = True) -> Iterator[Tensor]:
    """Every tensor of the declaration, in the order of the forward pass."""
    for out, part in list_weight_flows(sizes, head):
        yield from list_flow_tensors(out, part)
    for name, shape, copies in sizes.legacy_buffers():
        layers = Repeat("layer", copies, copies, runs=((0, copies),))
        yield Tensor(name, shape, "other", "decoder", "legacy_buffer", (layers,), (), None)


def list_unreachable(sizes: Sizes, head: bool = True) -> Iterator[tuple[Tensor, str]]:
    """Every tensor that the reference allocates and no forward pass reads, with the reason."""
    for group in sizes.without_document().unreachable(given("tokens", "tokens")):
        if not group.of_lm_head or (head and sizes.has_lm_head):
            yield from ((tensor, group.reason) for tensor in list_flow_tensors(group.flow) if tensor.parameters)


def sum_unreachable(sizes: Sizes, head: bool = True) -> dict[str, int]:
    """{reason: parameters} of the tensors that the reference allocates and no forward pass reads."""
    sums: dict[str, int] = {}
    for tensor, reason in list_unreachable(sizes, head):
        sums[reason] = sums.get(reason, 0) + tensor.parameters
    return sums


def list_flow_tensors(out: Data, part: str = "decoder") -> Iterator[Tensor]:
    """Every tensor that `out` depends on."""
    for record in list_weights(out, part):
        weight = record.weight
        if 0 in record.stored_shape:
            continue
        repeats = tuple(r for r in record.repeats if r.axis != "use" and not r.stacked)
        yield Tensor(
            name=record.name,
            shape=record.stored_shape,
            component=weight.component,
            part=record.part,
            role=weight.role,
            repeats=repeats,
            splits=weight.splits,
            tied_to=record.tied_to,
            stacked=record.stacked,
        )
