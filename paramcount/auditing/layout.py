"""How a table of claims is laid out: headings in one line or two, the column of models, or a column for each model."""

from __future__ import annotations

from collections.abc import Sequence

from paramcount.auditing.cells import EMPTY, LONGEST, clean_text
from paramcount.auditing.headings import Heading, parse_heading
from paramcount.zoo.names import index_spellings, normalize_name

Grid = list[tuple[int, list[str]]]  # lines with their numbers, the headings first
MODEL = Heading("", "model")
FEW = 2  # columns that have to be understood before a table is taken to be laid out in one way or another


def arrange(grid: Grid) -> tuple[tuple[Heading, ...], Grid]:
    """The headings of a table and its lines, a line for each model.

    >>> headings, lines = arrange([(1, ["", "GPT-2 XL"]), (3, ["Layers", "48"])])
    >>> [heading.kind for heading in headings], lines
    (['model', 'n_layers'], [(1, ['GPT-2 XL', '48'])])
    """
    (number, texts), *lines = grid
    headings = tuple(map(parse_heading, texts))
    if lines and (both := over_two_lines(headings, lines[0][1])):
        headings, lines = both, lines[1:]
    kinds = {heading.kind for heading in headings}
    if {*kinds} <= {"model", None} and (turned := by_columns(number, texts, lines)):
        return turned
    if headings and "model" not in kinds and begins_with_models(headings, lines):
        headings = (headings[0]._replace(kind="model"), *headings[1:])
    return headings, lines


def begins_with_models(headings: Sequence[Heading], lines: Grid) -> bool:
    """Whether a first column that is not named model names what the claims are about: models of the zoo, or anything in words where its
    heading says nothing else and others are understood."""
    names = [clean_text(cells[0]) for _, cells in lines]
    if any(map(is_model, names)):
        return True
    known = sum(heading.kind is not None for heading in headings)
    return headings[0].kind is None and known >= FEW and any(character.isalpha() for name in names for character in name)


def over_two_lines(upper: Sequence[Heading], texts: Sequence[str]) -> tuple[Heading, ...]:
    """The headings where the second line has some too, below that of the models nothing: Size over Params (B) and FP16 (GB). None where it is
    a line of claims."""
    if not any(text.strip() and not above.text for above, text in zip(upper, texts)) or texts[0].strip():
        return ()
    found: list[Heading] = []
    group, known = "", 0
    for above, text in zip(upper, texts):
        group = above.text or group
        below = parse_heading(text)
        if not any(map(str.isalpha, text)):
            found.append(above)
            continue
        together = parse_heading(f"{text} {group}")
        found.append((below if together.kind is None else together)._replace(text=f"{group} {below.text}".strip()))
        known += found[-1].kind is not None
    return tuple(found) if known >= FEW else ()


def by_columns(number: int, texts: Sequence[str], lines: Grid) -> tuple[tuple[Heading, ...], Grid] | None:
    """The same where each model has a column: its first line names one of the zoo, its first column what is claimed."""
    if not any(map(is_model, texts[1:])):
        return None
    headings = [parse_heading(cells[0]) for _, cells in lines]
    if not any(heading.kind not in (None, "model") for heading in headings):
        return None
    turned = [(number, [text, *(cells[i] for _, cells in lines)]) for i, text in enumerate(texts) if i]
    claimed = [i for i, heading in enumerate(headings, 1) if heading.kind]
    return (MODEL, *headings), [(line, cells) for line, cells in turned if any(clean_text(cells[i]) not in EMPTY for i in claimed)]


def is_model(text: str) -> bool:
    """Whether a heading is a spelling of a model of the zoo."""
    return normalize_name(clean_text(text[:LONGEST])) in index_spellings()
