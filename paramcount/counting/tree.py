"""The parameters of a model as a tree: parts, stacks of layers, components, experts and tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcount.flow import Repeat, TensorRow
from paramcount.flow.walk import count_copies
from paramcount.output.layer_kinds import describe_kind, name_layers
from paramcount.output.ranges import format_ranges
from paramcount.output.weight_names import name_group, name_part, name_tensor

if TYPE_CHECKING:
    from paramcount.counting.count import Count

MAX_RANGES = 3  # of layer indices in a label


@dataclass(frozen=True)
class TensorGroup:
    """A group of tensors, or a tensor, and the number of its copies in each copy of the group that contains it.

    `parameters` covers all copies in the model, so those of the children sum to those of the group; those of a tensor
    are the product of its shape and of every `count` from the root down.
    """

    kind: str  # model | part | layers | component | experts | tensor
    label: str  # of a tensor its name in the checkpoint, with "{layer}" and "{expert}"
    component: str  # of a component and of everything inside it, with details at tensors: "experts", "experts.gate"
    count: int
    active: int  # copies that one token uses
    shape: tuple[int, ...]  # of one copy of a tensor; otherwise empty
    parameters: int
    children: tuple[TensorGroup, ...] = ()
    title: str = ""  # what people call it: "MoE layers × 58", "queries"

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        plain = {"shape": list(self.shape), "children": [child.to_dict() for child in self.children]}
        return vars(self) | plain


class Level(NamedTuple):
    """What tells one group of tensors from the others beside it."""

    kind: str
    label: str
    component: str = ""
    copies: int = 1
    active: int = 1
    stack: str = ""
    title: str = ""


def group_tensors(count: Count) -> TensorGroup:
    """The tree of every tensor that the total includes, in the order of the forward pass.

    >>> from paramcount import count
    >>> tree = group_tensors(count("gpt2-small"))
    >>> [(group.label, group.count, group.parameters) for group in tree.children[0].children]
    [('embedding', 1, 38597376), ('position', 1, 786432), ('layers 0–11', 12, 85054464), ('norm', 1, 1536)]
    """
    tensors = (row for row in count.tensors if row.is_counted and row.parameters)
    rows = [(list_levels(row), row) for tensor in tensors for row in divide_tensor(tensor)]
    return TensorGroup("model", count.id, "", 1, 1, (), count.total, tuple(group_rows(rows, 0)), count.id)


def divide_tensor(row: TensorRow) -> list[TensorRow]:
    """A tensor as one row, or a row for each of its matrices if they belong to several components, as in Hymba."""
    matrices = row.split()
    return matrices if len({matrix.main_component for matrix in matrices}) > 1 else [row]


def list_levels(row: TensorRow) -> tuple[Level, ...]:
    """The groups that contain a tensor, from the outermost in: part, layers, component and experts."""
    component, _ = find_component(row)
    experts = [repeat for repeat in (*row.repeats, row.stacked) if repeat and repeat.axis == "expert"]
    return (
        Level("part", row.part, title=name_part(row.part)),
        *(make_layers_level(row.name, repeat) for repeat in row.repeats if repeat.axis == "layer"),
        Level("component", component, component, title=name_group(component)),
        *(Level("experts", "experts", component, repeat.count, repeat.active, title="experts") for repeat in experts),
    )


def find_component(row: TensorRow) -> tuple[str, str]:
    """(component, detail) of a tensor; the component twice if a fused one has several details."""
    details = {(share.main_component, share.detail) for share in row.split()}
    component, detail = min(details)
    return component, detail if len(details) == 1 else component


def make_layers_level(name: str, layers: Repeat) -> Level:
    """The group of a stack's layers of one kind; stacks are told apart by the names of their tensors."""
    ranges = format_ranges(layers.runs)
    indices = ", ".join([*ranges[:MAX_RANGES], *(["…"] if len(ranges) > MAX_RANGES else [])])
    label = f"layer{'s' if layers.count > 1 else ''} {indices}".strip()
    kind = describe_kind(layers.label)
    label = f"{kind} {label}" if kind else label
    stack, title = f"{name.partition('{layer}')[0]} {layers.runs}", name_layers(layers.label, layers.count)
    return Level("layers", label, "", layers.count, layers.active, stack, title)


def group_rows(rows: Iterable[tuple[tuple[Level, ...], TensorRow]], depth: int) -> Iterator[TensorGroup]:
    """The groups of some tensors at one depth of the tree; stacked experts are one matrix each."""
    groups: dict[Level | int, list[tuple[tuple[Level, ...], TensorRow]]] = {}
    for i, (levels, row) in enumerate(rows):
        groups.setdefault(levels[depth] if depth < len(levels) else i, []).append((levels, row))
    for level, members in groups.items():
        parameters = sum(row.parameters for _, row in members)
        if isinstance(level, int):
            row = members[0][1]
            count, active, _ = count_copies(tuple(r for r in row.repeats if r.axis not in ("layer", "expert")))
            title = name_tensor(row.name, [share.detail for share in row.split()], row.part)
            component = find_component(row)[1]
            yield TensorGroup("tensor", row.name, component, count, active, row.matrix, parameters, title=title)
            continue
        children = tuple(group_rows(members, depth + 1))
        yield TensorGroup(*level[:5], (), parameters, children, level.title)
