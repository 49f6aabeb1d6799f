"""The layout of a table of claims: headings on one or two lines, and models in rows or in columns."""

from __future__ import annotations

from collections.abc import Sequence

from paramcount.auditing.cells import EMPTY, LONGEST, clean_text
from paramcount.auditing.headings import Heading, parse_heading
from paramcount.zoo.names import index_spellings, normalize_name

Grid = list[tuple[int, list[str]]]  # (line number, cells); headings first
MODEL = Heading("", "model")
MIN_RECOGNIZED = 2  # recognised columns needed to accept an unusual layout


def arrange(grid: Grid) -> tuple[tuple[Heading, ...], Grid]:
    """The headings of a table and its lines, with one model per line.

    >>> headings, lines = arrange([(1, ["", "GPT-2 XL"]), (3, ["Layers", "48"])])
    >>> [heading.kind for heading in headings], lines
    (['model', 'n_layers'], [(1, ['GPT-2 XL', '48'])])
    """
    (number, texts), *lines = grid
    headings = tuple(map(parse_heading, texts))
    if lines and (merged := merge_heading_lines(headings, lines[0][1])):
        headings, lines = merged, lines[1:]
    kinds = {heading.kind for heading in headings}
    if {*kinds} <= {"model", None} and (transposed := transpose_grid(number, texts, lines)):
        return transposed
    if headings and "model" not in kinds and has_models_in_first_column(headings, lines):
        headings = (headings[0]._replace(kind="model"), *headings[1:])
    return headings, lines


def has_models_in_first_column(headings: Sequence[Heading], lines: Grid) -> bool:
    """Whether the first column contains models although its heading does not say so.

    It does if it names a zoo model, or if it contains words, has an unknown heading, and other columns are recognised.
    """
    names = [clean_text(cells[0]) for _, cells in lines]
    if any(map(is_model, names)):
        return True
    n_recognized = sum(heading.kind is not None for heading in headings)
    return (
        headings[0].kind is None
        and n_recognized >= MIN_RECOGNIZED
        and any(character.isalpha() for name in names for character in name)
    )


def merge_heading_lines(upper: Sequence[Heading], texts: Sequence[str]) -> tuple[Heading, ...]:
    """The combined headings if the second line contains headings too; empty if it contains claims.

    An example is "Size" above "Params (B)" and "FP16 (GB)".
    """
    if not any(text.strip() and not above.text for above, text in zip(upper, texts)) or texts[0].strip():
        return ()
    merged: list[Heading] = []
    group, n_recognized = "", 0
    for above, text in zip(upper, texts):
        group = above.text or group
        below = parse_heading(text)
        if not any(map(str.isalpha, text)):
            merged.append(above)
            continue
        combined = parse_heading(f"{text} {group}")
        merged.append((below if combined.kind is None else combined)._replace(text=f"{group} {below.text}".strip()))
        n_recognized += merged[-1].kind is not None
    return tuple(merged) if n_recognized >= MIN_RECOGNIZED else ()


def transpose_grid(number: int, texts: Sequence[str], lines: Grid) -> tuple[tuple[Heading, ...], Grid] | None:
    """The transposed table if each model is a column: the first line names zoo models, the first column quantities."""
    if not any(map(is_model, texts[1:])):
        return None
    headings = [parse_heading(cells[0]) for _, cells in lines]
    if not any(heading.kind not in (None, "model") for heading in headings):
        return None
    transposed = [(number, [text, *(cells[i] for _, cells in lines)]) for i, text in enumerate(texts) if i]
    columns = [i for i, heading in enumerate(headings, 1) if heading.kind]
    return (MODEL, *headings), [
        (line, cells) for line, cells in transposed if any(clean_text(cells[i]) not in EMPTY for i in columns)
    ]


def is_model(text: str) -> bool:
    """Whether a heading is the name of a zoo model."""
    return normalize_name(clean_text(text[:LONGEST])) in index_spellings()
