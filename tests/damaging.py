"""Checkpoints with one kind of damage at a time: the change to the tensors of a header, and the expected report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from paramcount.checkpoints.verify import Verification
from tests.headers import Tensors

Shape: TypeAlias = tuple[int, ...]


class Finding(NamedTuple):
    """The expected report for one tensor."""

    finding: str
    name: str
    declared: Shape | None
    held: Shape | None


class DamagedCheckpoint(NamedTuple):
    tensors: Tensors
    says: tuple[Finding, ...]
    module: str  # that any fault has to name


Damage: TypeAlias = Callable[[Tensors, str], Iterator[DamagedCheckpoint]]  # of one tensor, in as many ways as there are


def replace_tensor(
    tensors: Tensors, name: str, *says: Finding, instead: dict[str, tuple[str, Shape]] | None = None
) -> DamagedCheckpoint:
    """The tensors with others in place of one."""
    found: Tensors = {}
    for each, tensor in tensors.items():
        found |= {each: tensor} if each != name else instead or {}
    return DamagedCheckpoint(found, says, parent_module(name))


def parent_module(name: str) -> str:
    """The module of a tensor, or the tensor's own stem: the name that a report on its packing must contain."""
    return re.sub(r"(_blocks|_scales|_scale_inv|\.\w+)$", "", name)


def mistaken_names(name: str) -> list[str]:
    """Names that a tensor may have by mistake: with a word more or less, or of another layer."""
    words = name.split(".")
    found = [f"draft.{name}", ".".join((*words[:-1], f"old_{words[-1]}"))]
    if any(word.isdigit() for word in words):
        at = next(i for i, word in enumerate(words) if word.isdigit())
        found.append(".".join((*words[:at], "77", *words[at + 1 :])))
    return found


def drop_tensor(tensors: Tensors, name: str) -> Iterator[DamagedCheckpoint]:
    yield replace_tensor(tensors, name, Finding("missing", name, tensors[name][1], None))


def rename_tensor(tensors: Tensors, name: str) -> Iterator[DamagedCheckpoint]:
    shape = tensors[name][1]
    for other in mistaken_names(name):
        says = Finding("missing", name, shape, None), Finding("unexpected", other, None, shape)
        yield replace_tensor(tensors, name, *says, instead={other: tensors[name]})


def transpose_tensor(tensors: Tensors, name: str) -> Iterator[DamagedCheckpoint]:
    dtype, shape = tensors[name]
    turned = (*shape[:-2], *shape[:-3:-1])
    if len(shape) > 1 and turned != shape:
        yield replace_tensor(
            tensors, name, Finding("wrong shape", name, shape, turned), instead={name: (dtype, turned)}
        )


def resize_tensor(tensors: Tensors, name: str) -> Iterator[DamagedCheckpoint]:
    """The same number of values in another shape."""
    dtype, shape = tensors[name]
    shapes = [(*shape, 1), (1, *shape)]
    if len(shape) > 1 and shape[-1] % 2 == 0:
        shapes.append((*shape[:-2], shape[-2] * 2, shape[-1] // 2))
    for other in shapes:
        if other != shape:
            yield replace_tensor(
                tensors, name, Finding("wrong shape", name, shape, other), instead={name: (dtype, other)}
            )


def move_row(tensors: Tensors, name: str) -> Iterator[DamagedCheckpoint]:
    """One tensor a row shorter and another a row longer, so that the number of values is unchanged."""
    dtype, shape = tensors[name]
    for other, (type_of_other, shape_of_other) in tensors.items():
        if other != name and type_of_other == dtype and shape[1:] == shape_of_other[1:] and shape and shape[0] > 1:
            less, more = (shape[0] - 1, *shape[1:]), (shape_of_other[0] + 1, *shape[1:])
            first = replace_tensor(tensors, name, instead={name: (dtype, less)}).tensors
            says = Finding("wrong shape", name, shape, less), Finding("wrong shape", other, shape_of_other, more)
            yield replace_tensor(first, other, *says, instead={other: (dtype, more)})._replace(
                module=parent_module(name)
            )
            return


def duplicate_tensor(tensors: Tensors, name: str) -> Iterator[DamagedCheckpoint]:
    for other in mistaken_names(name):
        yield DamagedCheckpoint(
            {**tensors, other: tensors[name]},
            (Finding("unexpected", other, None, tensors[name][1]),),
            parent_module(other),
        )


DAMAGES: dict[str, Damage] = {
    each.__name__: each
    for each in (drop_tensor, rename_tensor, transpose_tensor, resize_tensor, move_row, duplicate_tensor)
}


def list_findings(found: Verification) -> set[Finding]:
    """The problems that a verification reports for separate tensors."""
    return {
        Finding(line.finding.kind, line.pattern, line.finding.declared_shape, line.finding.file_shape)
        for line in found.lines
        if not line.finding.ok
    }


def list_complaints(found: Verification) -> str:
    """All problems that a verification reports."""
    return "\n".join((*found.faults, *(line.pattern for line in found.lines if not line.finding.ok)))


def sample_names(names: list[str], n: int) -> list[str]:
    """One tensor per group that differs only in layer or expert, and of these a number from first to last."""
    kinds = list({re.sub(r"\d+", "#", name): name for name in names}.values())
    return [kinds[i * (len(kinds) - 1) // max(1, n - 1)] for i in range(min(n, len(kinds)))]
