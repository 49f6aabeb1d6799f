"""Walks over a declaration: its operations in execution order, and one record per weight.

Sums, tensor lists, explanations, traces and checkpoints all read these records, so splits, ties, roles and
repeats are interpreted in this file alone.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Repeat, Size, Weight, multiply

Step: TypeAlias = tuple[Data, str, tuple[Repeat, ...], str]  # an operation, its name prefix, enclosing repeats, part

# Of `list_steps`: an input, which may be found already; the output of a body; a step whose inputs are found.
INPUT, OUTPUT, READY = range(3)


class WeightRecord(NamedTuple):
    """One weight of a model. Sizes are ints, int64 arrays or polynomials, as the declaration was given."""

    name: str  # full name, as in the checkpoint; "{layer}" and "{expert}" stand for indices
    weight: Weight
    tied_to: str | None  # full name of the tensor that it is tied to
    repeats: tuple[Repeat, ...]  # outermost first, without those whose copies share it
    part: str

    @property
    def is_counted(self) -> bool:
        """Whether it adds to the total: a learned parameter of its own, and not of a multi-token-prediction layer."""
        return self.tied_to is None and self.weight.role == "parameter" and self.part != "mtp"

    @property
    def shares(self) -> tuple[tuple[str, Size], ...]:
        """(component, elements) of one copy; several if the matrix is fused."""
        weight = self.weight
        if not weight.splits:
            return ((weight.component, multiply(weight.shape)),)
        across = multiply(weight.shape[: weight.axis]) * multiply(weight.shape[weight.axis + 1 :])
        return tuple((component, across * size) for component, size in weight.splits)

    @property
    def share_shapes(self) -> tuple[tuple[str, tuple[Size, ...]], ...]:
        """(component, its part of the shape) of one copy."""
        weight = self.weight
        if not weight.splits:
            return ((weight.component, weight.shape),)
        before, after = weight.shape[: weight.axis], weight.shape[weight.axis + 1 :]
        return tuple((component, (*before, size, *after)) for component, size in weight.splits)

    @property
    def stacked(self) -> Repeat | None:
        """The experts that the checkpoint stores in one tensor."""
        for repeat in self.repeats:
            if repeat.stacked:
                return repeat
        return None

    @property
    def stored_shape(self) -> tuple[Size, ...]:
        """The shape of one tensor in the checkpoint, stacked experts included."""
        stacked, shape = self.stacked, self.weight.shape
        if stacked is None:
            return shape
        return (stacked.count * shape[0], *shape[1:]) if stacked.merged else (stacked.count, *shape)

    @property
    def layer(self) -> Repeat | None:
        """The layers that it is part of; None outside of any stack."""
        return self.repeat_of("layer")

    @property
    def expert(self) -> Repeat | None:
        return self.repeat_of("expert")

    def repeat_of(self, axis: str) -> Repeat | None:
        """The outermost repeat along an axis: layer, expert or use."""
        for repeat in self.repeats:
            if repeat.axis == axis:
                return repeat
        return None


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
    pending: list[tuple[Step, tuple[Data, ...] | None, int]] = [((out, "", (), part), None, OUTPUT)]
    while pending:
        step, inputs, stage = pending.pop()
        data, prefix, repeats, part = step
        if stage != READY:
            if stage == OUTPUT or id(data) not in seen:
                seen.add(id(data))
                pending.append((step, inputs, READY))
                pending += [((before, prefix, repeats, part), inputs, INPUT) for before in reversed(data.inputs)]
            continue
        if inputs is not None and not (data.inputs or data.weights) and data not in inputs:
            raise ParamcountError(
                f"a body uses {data!r} from outside", expected="what it takes through `reads` or `carry`"
            )
        found.append(step)
        pending += [
            ((body, *enter_body(data, repeat, prefix, repeats), data.part or part), inner, OUTPUT)
            for repeat, inner, body in reversed(data.bodies)
        ]
    return found


def enter_body(data: Data, repeat: Repeat, prefix: str, repeats: tuple[Repeat, ...]) -> tuple[str, tuple[Repeat, ...]]:
    """The prefix of names inside a body of data, and the repeats around it. `prefix`, `repeats`: those of data."""
    reused = next((outer for outer in reversed(repeats) if outer.tied_to), None)
    if reused:  # a block inside a reused one is reused as well
        repeat = repeat._replace(tied_to=f"{reused.tied_to}{data.prefix}", own=reused.own)
    inside = data.prefix[1:] if data.prefix.startswith("/") else prefix + data.prefix
    return inside, (*repeats, repeat)


def list_weights(out: Data, part: str = "decoder") -> list[WeightRecord]:
    """All weights that `out` depends on, in execution order."""
    return locate_weights(list_steps(out, part))


def locate_weights(steps: list[Step]) -> list[WeightRecord]:
    """All weights of these steps."""
    return [
        locate_weight(weight, prefix, repeats, part) for data, prefix, repeats, part in steps for weight in data.weights
    ]


def locate_weight(weight: Weight, prefix: str, repeats: tuple[Repeat, ...], part: str) -> WeightRecord:
    """The record of a weight inside these repeats, with this name prefix."""
    name, tied = weight.name, weight.tied_to
    if tied is None and name[0] != "/":  # an absolute name is outside of the block, so it is not tied
        for repeat in reversed(repeats):
            if repeat.tied_to and not name.endswith(repeat.own):
                tied = repeat.tied_to + name
                break
    root = "".join([repeat.root for repeat in repeats]) if name[0] == "/" or tied is not None else ""
    full, tied = root + name[1:] if name[0] == "/" else prefix + name, tied and root + tied
    for repeat in repeats:
        full, tied = rename(full, repeat), tied and rename(tied, repeat)
    copied = tuple([repeat for repeat in repeats if not name.endswith(repeat.shared)])
    return WeightRecord(full, weight, tied, copied, part)


def rename(name: str, repeat: Repeat) -> str:
    """The name of a weight, or of a stack, that a block renames."""
    if repeat.moved and name.startswith(repeat.moved[0]):
        name = repeat.moved[1] + name.removeprefix(repeat.moved[0])
    for old, new in repeat.renamed:
        name = name.replace(old, new)
    return name


def name_stacks(steps: list[Step]) -> dict[int, str]:
    """{id of a repeat of layers in these steps: name prefix of its layers, such as "model.layers."}."""
    found = {}
    for _, prefix, repeats, _ in steps:
        if repeats and repeats[-1].axis == "layer":
            name = prefix
            for repeat in repeats[:-1]:
                name = rename(name, repeat)
            found[id(repeats[-1])] = name.partition("{layer}")[0]
    return found


def sum_parameters(out: Data, *components: str, active: bool = False) -> Size:
    """Learned parameters that `out` depends on: all, or only those of `components`.

    `active`: only those active per token.
    """
    total: Size = 0
    for record in list_weights(out):
        if record.weight.role != "parameter" or record.tied_to is not None:
            continue
        copies, used, _ = count_copies(record.repeats)
        for component, elements in record.shares:
            if not components or component in components or component.partition(".")[0] in components:
                total = total + elements * (used if active else copies)
    return total
