"""What differs between two models: size by size, and component by component where the difference in parameters comes from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from paramcount.counting.arithmetic import format_arithmetic
from paramcount.counting.count import Count
from paramcount.sizes import Sizes
from paramcount.sizes.values import format_size, to_json
from paramcount.zoo import Model, count_model

BESIDE = ("buffers", "mtp")  # not included in the total


class SizeDifference(NamedTuple):
    """A size, flag or fact that differs. A size that only one of them has is None in the other, and `only` says whose it is."""

    name: str
    a: Any
    b: Any
    only: str = ""  # "a" or "b"


@dataclass(frozen=True)
class ComponentDifference:
    """A component that differs in parameters, or in how many of them one token uses."""

    component: str
    a: int
    b: int
    difference: int  # b less a
    active_a: int
    active_b: int
    active_difference: int
    arithmetic_a: str  # of `a`; empty where there is nothing
    arithmetic_b: str


@dataclass(frozen=True)
class Difference:
    """What differs between two models, `b` less `a`. The differences of `components` sum to `difference` and to `active_difference`."""

    a: str  # the first one's id
    b: str
    total_a: int
    total_b: int
    difference: int
    active_a: int
    active_b: int
    active_difference: int
    sizes: tuple[SizeDifference, ...]  # of the configs, in their order
    components: tuple[ComponentDifference, ...]  # the largest difference first, whatever its sign
    beside: tuple[SizeDifference, ...]  # what differs beside the total: buffers, MTP layers

    def _repr_html_(self) -> str:
        """The sizes and components that differ as a table, for notebooks."""
        from paramcount.output.tables import Column, Table, html_fragment

        columns = [
            Column("name", "", right=False),
            *(Column(name, name, show=format_size) for name in (self.a, self.b)),
            Column("difference", "difference", show=lambda n: "" if n is None else f"{n:+,}"),
        ]
        sizes = [[size.name, "–" if size.only == "b" else size.a, "–" if size.only == "a" else size.b, None] for size in self.sizes]
        components = [[part.component, part.a, part.b, part.difference] for part in self.components]
        total = ["total", self.total_a, self.total_b, self.difference]
        return html_fragment(Table(columns, [*sizes, *components, total], None, above=[f"{self.a} → {self.b}"]))

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data for JSON; a size that a model has not is left out."""
        sizes = [{"name": size.name} | {side: to_json(getattr(size, side)) for side in size.only or "ab"} for size in self.sizes]
        beside = {name: {"a": a, "b": b} for name, a, b, _ in self.beside}
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {
            "sizes": sizes,
            "components": [asdict(component) for component in self.components],
            "beside": beside,
        }


def diff_models(a: Model, b: Model) -> Difference:
    """The same of loaded models."""
    m, n = count_model(a), count_model(b)
    lengths = [{"context_length": model.context_length} for model in (a, b)] if a.context_length and b.context_length else [{}, {}]
    return Difference(
        a=a.id,
        b=b.id,
        total_a=m.total,
        total_b=n.total,
        difference=n.total - m.total,
        active_a=m.active,
        active_b=n.active,
        active_difference=n.active - m.active,
        sizes=tuple(differing(facts(a) | flat(a.sizes) | lengths[0], facts(b) | flat(b.sizes) | lengths[1])),
        components=tuple(sorted(components(m, n), key=lambda c: (-abs(c.difference), -abs(c.active_difference)))),
        beside=tuple(differing({name: getattr(m, name) for name in BESIDE}, {name: getattr(n, name) for name in BESIDE})),
    )


def facts(model: Model) -> dict[str, Any]:
    """What says which parameters a model has beside its sizes. `reference` is the class that was counted, with its head or without."""
    return {"architecture": model.architecture, "reference": model.reading.reference, "scope": model.reading.scope}


def flat(sizes: Sizes, prefix: str = "") -> dict[str, Any]:
    """{path: value} of all sizes, those of inner configs too, which are themselves told by their class."""
    found: dict[str, Any] = {}
    for name, value in sizes.__dict__.items():
        if isinstance(value, Sizes):
            found |= {prefix + name: type(value).reference.partition(" ")[0] or type(value).__name__, **flat(value, f"{prefix}{name}.")}
        else:
            found[prefix + name] = value
    return found


def differing(a: dict[str, Any], b: dict[str, Any]) -> list[SizeDifference]:
    """What two mappings have under the same name and is not equal, and what only one has."""
    found = [SizeDifference(name, value, b.get(name), "" if name in b else "a") for name, value in a.items() if name not in b or b[name] != value]
    return found + [SizeDifference(name, None, value, "b") for name, value in b.items() if name not in a]


def components(a: Count, b: Count) -> list[ComponentDifference]:
    """The components of which one has more, or more active ones."""
    names = [name for name in a.components if (a.components[name], a.active_components[name]) != (b.components[name], b.active_components[name])]
    sums_a, sums_b = (format_arithmetic(a), format_arithmetic(b)) if names else ({}, {})
    found = []
    for name in names:
        m, n, used_m, used_n = a.components[name], b.components[name], a.active_components[name], b.active_components[name]
        found.append(ComponentDifference(name, m, n, n - m, used_m, used_n, used_n - used_m, sums_a.get(name, ""), sums_b.get(name, "")))
    return found
