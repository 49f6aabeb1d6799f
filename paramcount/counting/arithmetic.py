"""The arithmetic behind a component's count, as readable text: "12 × (768 × 2,304 + 2,304)"."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from paramcount.counting.count import Count
from paramcount.flow import TensorRow, multiply

MANY_TENSORS = ("vision", "audio")  # their arithmetic would fill a page; see `count.details`
Term = tuple[tuple[int, ...], tuple[int, ...]]  # (numbers of experts, shape)


def format_arithmetic(count: Count) -> dict[str, str]:
    """{component: the arithmetic of its tensors' shapes}; tied tensors name the tensor that they are tied to.

    >>> from paramcount.api import count
    >>> format_arithmetic(count("gpt2-small"))["qkv"]
    '12 × (768 × 2,304 + 2,304)'
    """
    rows: dict[str, list[TensorRow]] = {}
    for tensor in chain.from_iterable(map(split_by_component, count.tensors)):
        if tensor.kind in ("total", "tied"):
            rows.setdefault(tensor.main_component, []).append(tensor)
    texts = {}
    for name, tensors in rows.items():
        if not any(tensor.is_counted for tensor in tensors):
            table = tensors[0].tied_to
            texts[name] = f"tied to {next((t.component for t in count.tensors if t.name == table), table)}"
        elif name in MANY_TENSORS:
            texts[name] = f"{sum(t.copies for t in tensors):,} tensors"
        else:
            texts[name] = format_sum(t for t in tensors if t.is_counted)
    return texts


def split_by_component(tensor: TensorRow) -> list[TensorRow]:
    """The parts of a fused tensor if they belong to several components; otherwise the tensor."""
    sums: dict[str, int] = {}
    for component, size in tensor.splits:
        name = tensor._replace(component=component).main_component
        sums[name] = sums.get(name, 0) + size
    if len(sums) < 2:
        return [tensor]
    before, after = tensor.matrix[: tensor.axis], tensor.matrix[tensor.axis + 1 :]
    return [tensor._replace(component=name, splits=(), matrix=(*before, size, *after)) for name, size in sums.items()]


def format_sum(tensors: Iterable[TensorRow]) -> str:
    """The elements of these tensors as a sum. Tensors with the same number of copies share brackets."""
    layers: dict[tuple[str, Term], int] = {}  # copies of each tensor over all kinds of layers
    for tensor in tensors:
        stacked = (tensor.stacked.count,) if tensor.stacked else ()
        experts = (*(r.count for r in tensor.repeats if r.axis != "layer"), *stacked)
        key = (tensor.name, (experts, tensor.matrix))
        layers[key] = layers.get(key, 0) + multiply(r.count for r in tensor.repeats if r.axis == "layer")
    brackets: dict[int, dict[Term, list[Term]]] = {}  # {copies: {term with sorted axes: equal terms}}
    for (_, (experts, shape)), copies in layers.items():
        equal_terms = brackets.setdefault(copies, {}).setdefault((experts, tuple(sorted(shape))), [])
        equal_terms.append((experts, shape))
    return " + ".join(format_bracket(copies, list(bracket.values())) for copies, bracket in brackets.items())


def format_bracket(copies: int, terms: list[list[Term]]) -> str:
    """So many copies of a sum. Each of its terms stands for those that are equal to it."""
    texts = []
    for equal_terms in terms:
        (experts, shape), n = equal_terms[0], len(equal_terms)
        factors = (*experts, *([n] if n > 1 else []), *shape) or (1,)  # a scalar has no axes
        texts.append(" × ".join(f"{factor:,}" for factor in factors))
    inner = " + ".join(texts)
    if copies == 1:
        return inner
    return f"{copies:,} × ({inner})" if len(terms) > 1 else f"{copies:,} × {inner}"
