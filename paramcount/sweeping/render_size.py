"""Configurations of a budget as a table."""

from __future__ import annotations

from typing import Any

from paramcount.output.numbers import format_bytes
from paramcount.output.tables import Column, Table
from paramcount.sizes.values import format_size
from paramcount.sweeping.size import Candidate, Sizing
from paramcount.zoo.columns import HEADINGS


def build_size_table(sizing: Sizing) -> Table:
    """One row per configuration, best first, with the rules below."""
    first = sizing.candidates[0]
    names = list(first.sizes)
    has_active = any(candidate.active != candidate.total for candidate in sizing.candidates)
    fields = [Column(name, HEADINGS.get(name, name), show=format_size) for name in names]
    fields.append(Column("total", "total"))
    if has_active:
        fields.append(Column("active", "active"))
    if first.memory is not None:
        fields.append(Column("memory", "memory", show=format_bytes))
    rows = [make_row(candidate, names, has_active) for candidate in sizing.candidates]
    above = [f"configurations like {sizing.like.id}, best first"]
    below = [f"rule: {rule}" for rule in sizing.rules]
    return Table(fields, rows, sizing.to_dict(), above=above, below=below, keys=sizing.varied)


def make_row(candidate: Candidate, names: list[str], has_active: bool) -> list[Any]:
    """The cells of one configuration."""
    cells = [candidate.sizes[name] for name in names] + [candidate.total]
    cells += [candidate.active] if has_active else []
    return cells if candidate.memory is None else [*cells, candidate.memory]
