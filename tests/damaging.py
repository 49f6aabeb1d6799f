"""Checkpoints damaged one way at a time: what is done to the tensors of a header, and what has to be said of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from paramcount.checkpoints.verify import Verification
from tests.headers import Tensors

Shape: TypeAlias = tuple[int, ...]


class Said(NamedTuple):
    """What has to be said of one tensor."""

    finding: str
    name: str
    declared: Shape | None
    held: Shape | None


class Damaged(NamedTuple):
    tensors: Tensors
    says: tuple[Said, ...]
    module: str  # that any fault has to name


Damage: TypeAlias = Callable[[Tensors, str], Iterator[Damaged]]  # of one tensor, in as many ways as there are


def damaged(tensors: Tensors, name: str, *says: Said, instead: dict[str, tuple[str, Shape]] | None = None) -> Damaged:
    """The tensors with others in the place of one."""
    found: Tensors = {}
    for each, tensor in tensors.items():
        found |= {each: tensor} if each != name else instead or {}
    return Damaged(found, says, module_of(name))


def module_of(name: str) -> str:
    """The module that holds a tensor, or the tensor's own stem: what has to be named where its packing is damaged."""
    return re.sub(r"(_blocks|_scales|_scale_inv|\.\w+)$", "", name)


def other_names(name: str) -> list[str]:
    """Names that a tensor might be given by mistake: with a word more or less, of another layer."""
    words = name.split(".")
    found = [f"draft.{name}", ".".join((*words[:-1], f"old_{words[-1]}"))]
    if any(word.isdigit() for word in words):
        at = next(i for i, word in enumerate(words) if word.isdigit())
        found.append(".".join((*words[:at], "77", *words[at + 1 :])))
    return found


def dropped(tensors: Tensors, name: str) -> Iterator[Damaged]:
    yield damaged(tensors, name, Said("missing", name, tensors[name][1], None))


def renamed(tensors: Tensors, name: str) -> Iterator[Damaged]:
    shape = tensors[name][1]
    for other in other_names(name):
        says = Said("missing", name, shape, None), Said("unexpected", other, None, shape)
        yield damaged(tensors, name, *says, instead={other: tensors[name]})


def transposed(tensors: Tensors, name: str) -> Iterator[Damaged]:
    dtype, shape = tensors[name]
    turned = (*shape[:-2], *shape[:-3:-1])
    if len(shape) > 1 and turned != shape:
        yield damaged(tensors, name, Said("wrong shape", name, shape, turned), instead={name: (dtype, turned)})


def resized(tensors: Tensors, name: str) -> Iterator[Damaged]:
    """With as many values in another shape."""
    dtype, shape = tensors[name]
    shapes = [(*shape, 1), (1, *shape)]
    if len(shape) > 1 and shape[-1] % 2 == 0:
        shapes.append((*shape[:-2], shape[-2] * 2, shape[-1] // 2))
    for other in shapes:
        if other != shape:
            yield damaged(tensors, name, Said("wrong shape", name, shape, other), instead={name: (dtype, other)})


def traded(tensors: Tensors, name: str) -> Iterator[Damaged]:
    """Shorter by a row that another one has too much: all of them together have as many values as before."""
    dtype, shape = tensors[name]
    for other, (type_of_other, shape_of_other) in tensors.items():
        if other != name and type_of_other == dtype and shape[1:] == shape_of_other[1:] and shape and shape[0] > 1:
            less, more = (shape[0] - 1, *shape[1:]), (shape_of_other[0] + 1, *shape[1:])
            first = damaged(tensors, name, instead={name: (dtype, less)}).tensors
            says = Said("wrong shape", name, shape, less), Said("wrong shape", other, shape_of_other, more)
            yield damaged(first, other, *says, instead={other: (dtype, more)})._replace(module=module_of(name))
            return


def duplicated(tensors: Tensors, name: str) -> Iterator[Damaged]:
    for other in other_names(name):
        yield Damaged(
            {**tensors, other: tensors[name]}, (Said("unexpected", other, None, tensors[name][1]),), module_of(other)
        )


DAMAGES: dict[str, Damage] = {
    each.__name__: each for each in (dropped, renamed, transposed, resized, traded, duplicated)
}


def against(found: Verification) -> set[Said]:
    """What a verification says against a checkpoint, tensor by tensor where each stands alone."""
    return {
        Said(line.finding.kind, line.pattern, line.finding.declared_shape, line.finding.file_shape)
        for line in found.lines
        if not line.finding.ok
    }


def told(found: Verification) -> str:
    """All that it says against the checkpoint."""
    return "\n".join((*found.faults, *(line.pattern for line in found.lines if not line.finding.ok)))


def a_few(names: list[str], n: int) -> list[str]:
    """Of tensors that differ only in layer or expert one each, and of these so many, from first to last."""
    kinds = list({re.sub(r"\d+", "#", name): name for name in names}.values())
    return [kinds[i * (len(kinds) - 1) // max(1, n - 1)] for i in range(min(n, len(kinds)))]
