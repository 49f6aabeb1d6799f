"""Walks over a declaration: its operations in execution order, and one row per tensor.

Sums, tables, explanations, file checks and pages all read these rows, so splits, ties, roles and repeats, and whether
the total includes a tensor, are interpreted in this file alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from paramcount.errors import ParamcountError
from paramcount.flow.graph import ONCE, Body, Data, Renaming, Repeat, Size, Tie, Weight, multiply


class Names(NamedTuple):
    """What the names of weights inside of blocks begin with, and what they are tied to and renamed."""

    prefix: str = ""
    tie: Tie | None = None
    renamings: tuple[Renaming, ...] = ()  # outermost first


OUTSIDE = Names()  # of all blocks

Step: TypeAlias = tuple[Data, Names, tuple[Repeat, ...], str]  # an operation, its names, enclosing repeats, part

# Of `list_steps`: an input, which may be found already; the output of a body; a step whose inputs are found.
INPUT, OUTPUT, READY = range(3)


ENCODERS = ("vision", "audio", "projector")  # parts that are one component each in an overview


class TensorRow(NamedTuple):
    """One tensor of a model, or tensors that differ only in layer or expert, as its checkpoint stores it.

    Sizes are ints, int64 arrays or polynomials, as the declaration was given.
    """

    name: str  # full name, as in the checkpoint; "{layer}" and "{expert}" stand for the indices of `repeats`
    matrix: tuple[Size, ...]  # the shape of one expert's; of a tensor that is not of several experts its own
    component: str  # "qkv.q"; of a fused tensor the first
    part: str
    role: str = "parameter"  # parameter | buffer | legacy_buffer | unreachable | scale
    repeats: tuple[Repeat, ...] = ()  # outermost first: each copy is a tensor of its own
    splits: tuple[tuple[str, Size], ...] = ()  # (component, size) of each part of a fused tensor along `axis`
    axis: int = 0  # of `matrix`
    tied_to: str | None = None  # full name of the tensor that it is tied to
    stacked: Repeat | None = None  # the experts that share this one tensor
    # When the reference keeps it in float32 and never quantises it: always | with float16 (if the others are) | "".
    float32: str = ""

    def __repr__(self) -> str:
        return (
            f"TensorRow(name={self.name!r}, shape={self.shape}, component={self.component!r}, copies={self.copies}, …)"
        )

    @property
    def detail(self) -> str:
        """Its component with details: "qkv.q"; vision, audio and projector are one component each: "vision.qkv.q"."""
        is_inside = self.part in ENCODERS and self.part != self.component
        return f"{self.part}.{self.component}" if is_inside else self.component

    @property
    def main_component(self) -> str:
        """Its component without details: "qkv", "vision"."""
        return self.detail.partition(".")[0]

    @property
    def kind(self) -> str:
        """The sum that it belongs to: total, or what is not included in it: tied | buffer | legacy_buffer | mtp |
        mtp_buffer | mtp_copy | unreachable | scale."""
        if self.part == "mtp" and self.role in ("parameter", "buffer"):
            return "mtp_copy" if self.tied_to is not None else "mtp" if self.role == "parameter" else "mtp_buffer"
        if self.tied_to is not None:
            return "tied"
        return "total" if self.role == "parameter" else self.role

    @property
    def is_counted(self) -> bool:
        """Whether the total includes it."""
        return self.kind == "total"

    @property
    def shape(self) -> tuple[Size, ...]:
        """As stored: an axis of stacked experts comes first."""
        experts = self.stacked
        if experts is None:
            return self.matrix
        if experts.merged:
            return (experts.count * self.matrix[0], *self.matrix[1:])
        return (experts.count, *self.matrix)

    @property
    def share_shapes(self) -> tuple[tuple[str, tuple[Size, ...]], ...]:
        """(component, its part of `matrix`); several if the tensor is fused."""
        if not self.splits:
            return ((self.component, self.matrix),)
        before, after = self.matrix[: self.axis], self.matrix[self.axis + 1 :]
        return tuple([(component, (*before, size, *after)) for component, size in self.splits])

    @property
    def shares(self) -> tuple[tuple[str, Size], ...]:
        """(component, elements of its part of `matrix`); several if the tensor is fused."""
        if not self.splits:
            return ((self.component, multiply(self.matrix)),)
        return tuple([(component, multiply(shape)) for component, shape in self.share_shapes])

    def split(self) -> list[TensorRow]:
        """A row for each component, as if its part were a tensor of its own."""
        if not self.splits:
            return [self]
        return [self._replace(component=name, matrix=shape, splits=()) for name, shape in self.share_shapes]

    @property
    def multiplicity(self) -> tuple[Size, Size, Size]:
        """(number of such matrices in all layers and experts, those that one token uses, the same at least)."""
        return count_copies(self.repeats if self.stacked is None else (*self.repeats, self.stacked))

    @property
    def copies(self) -> Size:
        """The number of such tensors."""
        return multiply([repeat.count for repeat in self.repeats])

    @property
    def elements(self) -> Size:
        """Elements in all copies, tied or not."""
        return multiply(self.matrix) * self.multiplicity[0]

    @property
    def parameters(self) -> Size:
        """Learned parameters in all copies; 0 if tied or a buffer."""
        return self.elements if self.kind in ("total", "mtp") else 0

    @property
    def active(self) -> Size:
        """Active parameters in all copies."""
        return multiply(self.matrix) * self.multiplicity[1] if self.kind in ("total", "mtp") else 0

    @property
    def note(self) -> str:
        """Why the tensor is not included in the total: tied, MTP, buffer or legacy buffer; empty if it is included."""
        names = {"total": "", "mtp": "MTP", "mtp_buffer": "MTP", "mtp_copy": "tied"}
        return names.get(self.kind, self.kind.replace("_", " "))

    @property
    def layer(self) -> Repeat | None:
        """The layers that it is part of; None outside of any stack."""
        return self.find_repeat("layer")

    @property
    def stack(self) -> str:
        """The prefix of its layers: "model.layers."; "" outside of all layers."""
        return self.layer.stack if self.layer else ""

    @property
    def expert(self) -> Repeat | None:
        return self.find_repeat("expert") or self.stacked

    def find_repeat(self, axis: str) -> Repeat | None:
        """The outermost repeat along an axis."""
        for repeat in self.repeats:
            if repeat.axis == axis:
                return repeat
        return None

    def with_shape(self, shape: tuple[Size, ...]) -> TensorRow:
        """The same tensor stored with another shape, which has the same axis of stacked experts."""
        experts = self.stacked
        if experts is None:
            return self._replace(matrix=shape)
        rows = (shape[0] // experts.count,) if experts.merged else ()
        return self._replace(matrix=(*rows, *shape[1:]))

    def to_dict(self) -> dict[str, Any]:
        """The tensor as plain data for JSON."""
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
            "repeats": [repeat.to_dict() for repeat in self.repeats],
            "splits": [{"component": component, "size": size} for component, size in self.splits],
            "stacked": self.stacked.to_dict() if self.stacked else None,
        }


def count_copies(repeats: tuple[Repeat, ...]) -> tuple[Size, Size, Size]:
    """(copies, copies that one token uses, the same at least) of what stands under these repeats."""
    count: Size = 1
    active: Size = 1
    least: Size = 1
    for repeat in repeats:
        count = count * repeat.count
        active = active * repeat.active
        least = least * (repeat.active if repeat.least is None else repeat.least)
    return count, active, least


def list_steps(out: Data, part: str = "decoder") -> list[Step]:
    """All operations that `out` depends on, in execution order; bodies follow the operation that contains them.

    Raises: ParamcountError if a body uses data of another body (it would be counted in both): pass it through `reads`
    or `carry` instead.
    """
    found: list[Step] = []
    seen: set[int] = set()
    # (a step; the inputs of its body, if any; what is next): a list, because flows are deeper than calls can be nested.
    pending: list[tuple[Step, tuple[Data, ...] | None, int]] = [((out, OUTSIDE, (), part), None, OUTPUT)]
    while pending:
        step, inputs, stage = pending.pop()
        data, names, repeats, part = step
        if stage != READY:
            if stage == OUTPUT or id(data) not in seen:
                seen.add(id(data))
                pending.append((step, inputs, READY))
                pending += [((before, names, repeats, part), inputs, INPUT) for before in reversed(data.earlier)]
                pending += [((before, names, repeats, part), inputs, INPUT) for before in reversed(data.inputs)]
            continue
        if inputs is not None and not (data.inputs or data.weights) and data not in inputs:
            raise ParamcountError(
                f"a body uses {data!r} from outside", expected="what it takes through `reads` or `carry`"
            )
        found.append(step)
        pending += [
            ((body.out, *enter_body(data, body, names, repeats), data.part or part), body.inputs, OUTPUT)
            for body in reversed(data.bodies)
        ]
    return found


def enter_body(data: Data, body: Body, names: Names, repeats: tuple[Repeat, ...]) -> tuple[Names, tuple[Repeat, ...]]:
    """The names inside a body of data, and the repeats around it. `names`, `repeats`: those of data."""
    prefix, tie, renamings = names
    inside = data.prefix[1:] if data.prefix.startswith("/") else prefix + data.prefix
    # A block inside a reused one is reused as well.
    tie = body.tie if tie is None else Tie(tie.prefix + data.prefix, tie.own)
    names = Names(inside, tie, renamings if body.renaming is None else (*renamings, body.renaming))
    repeat = body.repeat
    if repeat is ONCE:
        return names, repeats
    if repeat.axis == "layer":
        repeat = repeat._replace(stack=rename(inside, renamings).partition("{layer}")[0])
    return names, (*repeats, repeat)


def list_rows(out: Data, part: str = "decoder") -> list[TensorRow]:
    """A row for each weight that `out` depends on, in execution order."""
    steps = list_steps(out, part)
    return [
        fold_weight(weight, names, repeats, part) for data, names, repeats, part in steps for weight in data.weights
    ]


def fold_weight(weight: Weight, names: Names, repeats: tuple[Repeat, ...], part: str) -> TensorRow:
    """The row of a weight inside these repeats, with these names."""
    name, component, shape, splits, axis, tied, role, is_shared = weight
    prefix, tie, renamings = names
    is_absolute = name[0] == "/"  # outside of the block, so it is not tied
    if tied is None and tie is not None and not is_absolute and not name.endswith(tie.own):
        tied = tie.prefix + name
    full = name[1:] if is_absolute else prefix + name
    if renamings:
        root = "".join([renaming.root for renaming in renamings])
        full = rename(root + full if is_absolute else full, renamings)
        tied = tied and rename(root + tied, renamings)
    copies, stacked = [], None
    for repeat in repeats:
        if is_shared and repeat.axis == "expert":
            continue
        if repeat.stored != "apart":
            stacked = repeat
        else:
            copies.append(repeat)
    return TensorRow(full, shape, component, part, role, tuple(copies), splits, axis, tied, stacked)


def rename(name: str, renamings: Iterable[Renaming]) -> str:
    """The name of a weight, or of a stack, that blocks rename."""
    for _, moved, replaced in renamings:
        if moved and name.startswith(moved[0]):
            name = moved[1] + name.removeprefix(moved[0])
        for old, new in replaced:
            name = name.replace(old, new)
    return name


def sum_parameters(out: Data, *components: str, active: bool = False) -> Size:
    """Learned parameters that `out` depends on: all, or only those of `components`.

    `active`: only those active per token.
    """
    total: Size = 0
    for row in list_rows(out):
        if row.is_counted:
            copies, used, _ = row.multiplicity
            for component, elements in row.shares:
                if not components or component in components or component.partition(".")[0] in components:
                    total = total + elements * (used if active else copies)
    return total
