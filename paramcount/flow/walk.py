"""Walks over a declared flow: its operations in the order they run, and one record for each weight, which every reader uses."""

from __future__ import annotations

from typing import TypeAlias

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Repeat, Size, Weight, multiply

Step: TypeAlias = tuple[Data, str, tuple[Repeat, ...], str]  # an operation, its name prefix, the repeats it stands under, its part
Held: TypeAlias = tuple[str, Weight, str | None, tuple[Repeat, ...], str]  # full name, weight, what it is tied to, repeats, part


def steps(out: Data, part: str = "decoder") -> list[Step]:
    """Every operation that leads to `out`, in the order it runs, bodies behind the operation that holds them.

    Raises: ParamcountError where a body uses data of another one: it would be counted again in each of them, so it has to be
    read or carried.
    """
    found: list[Step] = []
    seen: set[int] = set()

    def visit(data: Data, prefix: str, repeats: tuple[Repeat, ...], part: str, inputs: tuple[Data, ...] | None) -> None:
        seen.add(id(data))
        for before in data.inputs:
            if id(before) not in seen:
                visit(before, prefix, repeats, part, inputs)
        if inputs is not None and not data.inputs and data not in inputs:
            raise ParamcountError(f"a body uses {data!r} from outside", accepted="what it takes through `reads` or `carry`")
        found.append((data, prefix, repeats, part))
        for repeat, inner, body in data.bodies:
            visit(body, prefix + data.prefix, (*repeats, repeat), data.part or part, inner)

    visit(out, "", (), part, None)
    return found


def weights(out: Data, part: str = "decoder") -> list[Held]:
    """Every weight that leads to `out`, in the order it is read."""
    return [
        (*placed(weight, prefix, repeats), repeats, where)  # its full name first
        for data, prefix, repeats, where in steps(out, part)
        for weight in data.weights
    ]


def placed(weight: Weight, prefix: str, repeats: tuple[Repeat, ...]) -> tuple[str, Weight, str | None]:
    """A weight of an operation that stands there: its full name, itself, the full name of what it is tied to."""
    name, tied = weight.name, weight.tied_to
    if tied is None and name[0] != "/":  # what stands outside its block is not tied with it
        for repeat in repeats:
            if repeat.tied_to:
                tied = repeat.tied_to + name
                break
    root = "".join([repeat.root for repeat in repeats]) if name[0] == "/" or tied is not None else ""
    full, tied = root + name[1:] if name[0] == "/" else prefix + name, tied and root + tied
    for repeat in repeats:
        if repeat.moved:
            full, tied = renamed(full, *repeat.moved), tied and renamed(tied, *repeat.moved)
    return full, weight, tied


def renamed(name: str, old: str, new: str) -> str:
    return new + name.removeprefix(old) if name.startswith(old) else name


def parameters(out: Data, *components: str, active: bool = False) -> Size:
    """Learned parameters that lead to `out`: all, or those of these components; with `active`, those that one token uses."""
    total: Size = 0
    for _, weight, tied_to, repeats, _ in weights(out):
        if weight.role != "parameter" or tied_to is not None:
            continue
        times = multiply(r.active if active else r.count for r in repeats)
        if not components:
            total = total + multiply(weight.shape) * times
            continue
        across = weight.shape[: weight.axis] + weight.shape[weight.axis + 1 :]
        for name, width in weight.splits or ((weight.component, weight.shape[weight.axis]),):
            if name in components or name.partition(".")[0] in components:
                total = total + multiply(across) * width * times
    return total
