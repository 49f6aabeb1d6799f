"""The family of a model: its predecessor with what differs, and the others by size."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from paramcount.explaining.render_why import format_signed
from paramcount.explore.article.elements import Html, element, make_command, make_number, make_section, make_table
from paramcount.sizes.values import format_size
from paramcount.views.diff import Difference, diff_models
from paramcount.zoo import CONFIGS, Model, count_model, load_entry

ALIKE = 4  # a predecessor is at most so many times as large, or as small
MOST = 11  # relatives in the table
ENCODERS = ("vision", "audio")  # which a predecessor has if the model has them


class Relative(NamedTuple):
    """A model of a family."""

    id: str
    name: str
    total: int
    active: int
    released: str  # "" if unknown
    encoders: tuple[bool, ...]


@cache
def read_families() -> dict[str, tuple[Relative, ...]]:
    """{family: its built-in models with known sizes, smallest first}."""
    families: dict[str, list[Relative]] = {}
    with (CONFIGS / "zoo.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["estimate"] == "false":
                relative = Relative(
                    id=row["id"],
                    name=row["name"],
                    total=int(row["total"]),
                    active=int(row["active"]),
                    released=row["released"],
                    encoders=tuple(row[name] != "0" for name in ENCODERS),
                )
                families.setdefault(row["family"], []).append(relative)
    return {family: tuple(sorted(models, key=lambda model: model.total)) for family, models in families.items()}


def list_relatives(model: Model) -> Sequence[Relative]:
    """The built-in models of the model's family, itself included if it is one of them."""
    return read_families().get(model.family or "", ())


def find_predecessor(model: Model) -> Relative | None:
    """The latest earlier release of the family that has the same encoders and a similar size; of several, the one
    nearest in size. None if there is none, or if the dates are unknown."""
    relatives = list_relatives(model)
    own = next((relative for relative in relatives if relative.id == model.id), None)
    if own is None or not own.released:
        return None
    earlier = [
        relative
        for relative in relatives
        if relative.released
        and relative.released < own.released
        and relative.encoders == own.encoders
        and relative.total <= ALIKE * own.total
        and own.total <= ALIKE * relative.total
    ]
    return max(earlier, key=lambda relative: (relative.released, -measure_ratio(relative, own)), default=None)


def measure_ratio(a: Relative, b: Relative) -> float:
    """How many times as large the larger one is."""
    return max(a.total, b.total) / min(a.total, b.total)


def render_predecessor(model: Model) -> Html:
    predecessor = find_predecessor(model)
    if predecessor is None:
        return Html("")
    difference = diff_models(load_entry(predecessor.id), model)
    commands = [make_command("diff", predecessor.id, model.id)]
    intro = element("p", "Compared with ", make_link(predecessor), f", released {predecessor.released}:")
    tables = render_difference(difference, model, predecessor)
    return make_section(f"What has changed since {predecessor.name}", commands, intro, *tables)


def render_difference(difference: Difference, model: Model, predecessor: Relative) -> list[Html]:
    if not difference.sizes and not difference.components:
        return [element("p", "All sizes and all components are the same.")]
    sizes = [
        [
            element("code", size.name),
            "–" if size.only == "b" else format_size(size.a),
            "–" if size.only == "a" else format_size(size.b),
        ]
        for size in difference.sizes
    ]
    parts = [[part.component, part.a, part.b, format_signed(part.difference)] for part in difference.components]
    parts.append(["total", difference.total_a, difference.total_b, format_signed(difference.difference)])
    names = predecessor.name, model.name
    return [
        make_table(["size", *names], sizes, numbers=(1, 2)) if sizes else Html(""),
        make_table(["component", *names, "difference"], parts, numbers=(1, 2, 3)),
    ]


def render_siblings(model: Model) -> Html:
    relatives = list_relatives(model)
    if len(relatives) < 2:
        return Html("")
    shown = list_nearest(relatives, model)
    has_experts = any(relative.active != relative.total for relative in shown)
    rows = [
        [
            element("b", relative.name) if relative.id == model.id else make_link(relative),
            make_number(relative.total),
            *(["" if relative.active == relative.total else make_number(relative.active)] if has_experts else []),
            relative.released,
        ]
        for relative in shown
    ]
    headings = ["model", "total", *(["active"] if has_experts else []), "released"]
    table = make_table(headings, rows, numbers=range(1, len(headings) - 1))
    commands = [make_command("list", str(model.family))]
    if len(shown) == len(relatives):
        return make_section(f"The {model.family} family", commands, table)
    text = f"The {len(shown)} of its {len(relatives):,} models that are nearest in size."
    return make_section(f"The {model.family} family", commands, element("p", text), table)


def list_nearest(relatives: Sequence[Relative], model: Model) -> Sequence[Relative]:
    """The relatives nearest in size, smallest first."""
    total = count_model(model).total
    own = next((i for i, relative in enumerate(relatives) if relative.id == model.id), None)
    if own is None:
        own = sum(relative.total < total for relative in relatives)
    first = max(0, min(own - MOST // 2, len(relatives) - MOST))
    return relatives[first : first + MOST]


def make_link(relative: Relative) -> Html:
    return element("a", relative.name, href=f"#model/{relative.id}")
