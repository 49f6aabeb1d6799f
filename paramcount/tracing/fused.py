"""Fused matrices in a list of steps: their parts, each with its share of the product and of the work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from paramcount.errors import join_words, make_printable
from paramcount.flow.operation import Form
from paramcount.tracing.trace import Product, Step


def split_fused(steps: Sequence[Step]) -> list[Step]:
    """The steps with each fused matrix as its parts alone: queries, keys and values rather than all of them first.

    A part has its share of the work. A fused matrix whose output another step reads as well stays.
    """
    readers: dict[int, list[int]] = {}
    for i, step in enumerate(steps):
        for source in step.reads:
            readers.setdefault(source, []).append(i)
    parts: dict[int, Step] = {}
    fused = [i for i, step in enumerate(steps) if is_fused(step, [steps[j] for j in readers.get(i, [])])]
    for i in fused:
        for j in readers[i]:
            parts[j] = take_part(steps[j], steps[i])
    return [parts.get(i, step) for i, step in enumerate(steps) if i not in fused]


def describe_fused(steps: Sequence[Step]) -> Iterator[str]:
    """A footnote for each matrix whose parts `split_fused` lists."""
    parts: dict[str, dict[str, None]] = {}  # {name of a matrix: its parts, in order}
    for step in split_fused(steps):
        if step.form is Form.SPLIT and step.name:
            parts.setdefault(step.name, {})[step.text] = None
    matrices: dict[str, list[str]] = {}
    for name, texts in parts.items():
        matrices.setdefault(join_words(list(texts), "and"), []).append(name)
    for text, names in matrices.items():
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        yield f"{text}: one matrix, {make_printable(names[0])}{more}"


def is_fused(step: Step, readers: Sequence[Step]) -> bool:
    """Whether a step is a matrix of which each reader takes a part out, and nothing else reads it."""
    if step.form is not Form.LINEAR or step.product is None or len(readers) < 2:
        return False
    is_split = all(part.form is Form.SPLIT and part.component and part.scopes == step.scopes for part in readers)
    return is_split and sum(count_columns(part, step) for part in readers) == step.out[-1]


def count_columns(part: Step, fused: Step) -> int:
    """The columns of a fused matrix that make up a part."""
    sizes = part.out[len(fused.out) - 1 :] if part.product is None else (part.heads, part.product.right[-1])
    return prod(n for n in sizes if isinstance(n, int))


def take_part(part: Step, fused: Step) -> Step:
    """A part with the product that computes it."""
    columns, product = count_columns(part, fused), part.product
    if product is None and fused.product is not None:
        left, right, out = fused.product
        product = Product(left, (right[0], columns), (*out[:-1], columns))
    work = fused.multiply_adds
    return part._replace(
        product=product,
        name=fused.name,
        multiply_adds=None if work is None else work * columns // int(fused.out[-1]),
    )
