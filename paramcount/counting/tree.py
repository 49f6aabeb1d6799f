"""The parameters of a model as a tree: parts, stacks of layers, components, experts and tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from paramcount.counting.components import locate_component
from paramcount.flow import Repeat
from paramcount.output.layer_kinds import describe_kind
from paramcount.output.ranges import format_ranges

if TYPE_CHECKING:
    from paramcount.counting.count import Count
    from paramcount.flow import TensorRow

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

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        plain = {"shape": list(self.shape), "children": [child.to_dict() for child in self.children]}
        return vars(self) | plain


Level: TypeAlias = tuple[str, str, str, int, int, str]  # kind, label, component, count, active, stack


class Leaf(NamedTuple):
    """A tensor and the groups that contain it, from the outermost in."""

    levels: tuple[Level, ...]
    tensor: TensorGroup


def group_tensors(count: Count) -> TensorGroup:
    """The tree of every tensor that the total includes, in the order of the forward pass.

    >>> from paramcount import count
    >>> tree = group_tensors(count("gpt2-small"))
    >>> [(group.label, group.count, group.parameters) for group in tree.children[0].children]
    [('embedding', 1, 38597376), ('position', 1, 786432), ('layers 0–11', 12, 85054464), ('norm', 1, 1536)]
    """
    leaves = [make_leaf(tensor) for tensor in count.tensors if tensor.is_counted]
    return TensorGroup("model", count.id, "", 1, 1, (), count.total, tuple(group_leaves(leaves, 0)))


def make_leaf(tensor: TensorRow) -> Leaf:
    """A tensor below its part, layers, component and experts; stacked experts are one matrix each."""
    details = {locate_component(tensor.part, name) for name, _ in tensor.shares}
    component, detail = min(details)
    experts = [repeat for repeat in tensor.repeats if repeat.axis == "expert"]
    others = [repeat for repeat in tensor.repeats if repeat.axis not in ("layer", "expert")]
    count, active = prod(repeat.count for repeat in others), prod(repeat.active for repeat in others)
    if tensor.stacked:
        experts.append(tensor.stacked)
    levels = (
        ("part", tensor.part, "", 1, 1, ""),
        *(make_layers_level(tensor.name, repeat) for repeat in tensor.repeats if repeat.axis == "layer"),
        ("component", component, component, 1, 1, ""),
        *(("experts", "experts", component, repeat.count, repeat.active, "") for repeat in experts),
    )
    own_component = detail if len(details) == 1 else component
    return Leaf(
        levels, TensorGroup("tensor", tensor.name, own_component, count, active, tensor.matrix, tensor.parameters)
    )


def make_layers_level(name: str, layers: Repeat) -> Level:
    """The group of a stack's layers of one kind; stacks are told apart by the names of their tensors."""
    ranges = format_ranges(layers.runs)
    indices = ", ".join([*ranges[:MAX_RANGES], *(["…"] if len(ranges) > MAX_RANGES else [])])
    label = f"layer{'s' if layers.count > 1 else ''} {indices}".strip()
    kind = describe_kind(layers.label)
    label = f"{kind} {label}" if kind else label
    return "layers", label, "", layers.count, layers.active, f"{name.partition('{layer}')[0]} {layers.runs}"


def group_leaves(leaves: Iterable[Leaf], depth: int) -> Iterator[TensorGroup]:
    """The groups of some tensors at one depth of the tree."""
    groups: dict[Level | int, list[Leaf]] = {}
    for i, leaf in enumerate(leaves):
        key = leaf.levels[depth] if depth < len(leaf.levels) else i
        groups.setdefault(key, []).append(leaf)
    for level, members in groups.items():
        if isinstance(level, int):
            yield members[0].tensor
            continue
        kind, label, component, count, active, _ = level
        parameters = sum(leaf.tensor.parameters for leaf in members)
        children = tuple(group_leaves(members, depth + 1))
        yield TensorGroup(kind, label, component, count, active, (), parameters, children)
