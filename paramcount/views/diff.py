"""The difference between two models: sizes, settings of the forward pass, and parameters by component."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from paramcount.counting.arithmetic import format_arithmetic
from paramcount.counting.count import Count
from paramcount.counting.results import JsonResult
from paramcount.sizes import Sizes
from paramcount.sizes.values import to_json
from paramcount.views.forward_settings import list_forward_settings
from paramcount.zoo import Model, count_model
from paramcount.zoo.checks import describe_release_difference

COMPARED = ("total", "active", "reference_total")
NOT_INCLUDED = ("buffers", "mtp")  # counts that are not part of the total


class SizeDifference(NamedTuple):
    """A size or flag that differs. If only one model has it, `only` names that model; the other value is None."""

    name: str
    a: Any
    b: Any
    only: str = ""  # "a" or "b"


@dataclass(frozen=True)
class ComponentDifference:
    """A component with different parameters or active parameters."""

    component: str
    a: int
    b: int
    difference: int  # b minus a
    active_a: int
    active_b: int
    active_difference: int
    arithmetic_a: str  # "" if the component has no parameters
    arithmetic_b: str


@dataclass(frozen=True, repr=False)
class Difference(JsonResult):
    """The difference between two models, `b` minus `a`.

    The components sum to `difference` and to `active_difference`.
    """

    shown = ("a", "b", "total_a", "total_b", "difference")
    html_table = "paramcount.views.notebooks:build_difference_table"

    a: str  # id of the first model
    b: str
    total_a: int
    total_b: int
    difference: int
    active_a: int
    active_b: int
    active_difference: int
    reference_total_a: int  # of the reference implementation; differs from the total of some released files
    reference_total_b: int
    sizes: tuple[SizeDifference, ...]  # in the order of the configs
    settings: tuple[SizeDifference, ...]  # of the forward pass, with the values of all layers; unknown ones left out
    components: tuple[ComponentDifference, ...]  # largest absolute difference first
    beside: tuple[SizeDifference, ...]  # not included in the total: buffers, MTP layers
    release_differences: tuple[str, ...]  # each model whose total is not that of the reference, and why

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON. A size that a model does not have is missing."""
        sizes = [
            {"name": size.name} | {side: to_json(getattr(size, side)) for side in size.only or "ab"}
            for size in self.sizes
        ]
        beside = {name: {"a": a, "b": b} for name, a, b, _ in self.beside}
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {
            "sizes": sizes,
            "settings": [
                {"name": setting.name} | {side: list(getattr(setting, side)) for side in setting.only or "ab"}
                for setting in self.settings
            ],
            "components": [asdict(component) for component in self.components],
            "beside": beside,
        }


def diff_models(a: Model, b: Model) -> Difference:
    """The difference between two loaded models."""
    count_a, count_b = count_model(a), count_model(b)
    sizes_a = list_facts(a) | flatten_sizes(a.sizes)
    sizes_b = list_facts(b) | flatten_sizes(b.sizes)
    if a.context_length and b.context_length:
        sizes_a["context_length"], sizes_b["context_length"] = a.context_length, b.context_length
    components = compare_components(count_a, count_b)
    extras_a = {name: getattr(count_a, name) for name in NOT_INCLUDED}
    extras_b = {name: getattr(count_b, name) for name in NOT_INCLUDED}
    return Difference(
        a=a.id,
        b=b.id,
        **{f"{name}_a": getattr(count_a, name) for name in COMPARED},
        **{f"{name}_b": getattr(count_b, name) for name in COMPARED},
        difference=count_b.total - count_a.total,
        active_difference=count_b.active - count_a.active,
        sizes=tuple(find_differences(sizes_a, sizes_b)),
        settings=tuple(compare_settings(a, b)),
        components=tuple(sorted(components, key=lambda c: (-abs(c.difference), -abs(c.active_difference)))),
        beside=tuple(find_differences(extras_a, extras_b)),
        release_differences=tuple(
            f"{count.id}: {text}" for count in (count_a, count_b) if (text := describe_release_difference(count))
        ),
    )


def list_facts(model: Model) -> dict[str, Any]:
    """What determines the parameters besides the sizes. `reference`: the counted class, with or without its head."""
    return {"architecture": model.architecture, "reference": model.reading.reference, "scope": model.reading.scope}


def flatten_sizes(sizes: Sizes, prefix: str = "") -> dict[str, Any]:
    """{path: value} of all sizes, including those of inner configs; the value of an inner config is its class."""
    values: dict[str, Any] = {}
    for name, value in sizes.__dict__.items():
        if isinstance(value, Sizes):
            values[prefix + name] = type(value).reference.partition(" ")[0] or type(value).__name__
            values |= flatten_sizes(value, f"{prefix}{name}.")
        else:
            values[prefix + name] = value
    return values


def find_differences(a: dict[str, Any], b: dict[str, Any]) -> list[SizeDifference]:
    """The names with different values, or with a value in only one of the two."""
    differences = []
    for name, value in a.items():
        if name not in b:
            differences.append(SizeDifference(name, value, None, "a"))
        elif b[name] != value:
            differences.append(SizeDifference(name, value, b[name]))
    return differences + [SizeDifference(name, None, value, "b") for name, value in b.items() if name not in a]


def compare_settings(a: Model, b: Model) -> list[SizeDifference]:
    """The settings of the forward pass that differ; what one of the models does not state is no difference."""
    settings_a, settings_b = list_forward_settings(a), list_forward_settings(b)
    known = [
        name
        for name in {**settings_a, **settings_b}
        if None not in settings_a.get(name, ()) and None not in settings_b.get(name, ())
    ]
    return find_differences(*({name: s[name] for name in known if name in s} for s in (settings_a, settings_b)))


def compare_components(a: Count, b: Count) -> list[ComponentDifference]:
    counts = {
        name: (a.components[name], b.components[name], a.active_components[name], b.active_components[name])
        for name in a.components
    }
    differing = {name: n for name, n in counts.items() if n[0] != n[1] or n[2] != n[3]}
    if not differing:
        return []
    arithmetic_a, arithmetic_b = format_arithmetic(a), format_arithmetic(b)
    return [
        ComponentDifference(
            component=name,
            a=total_a,
            b=total_b,
            difference=total_b - total_a,
            active_a=active_a,
            active_b=active_b,
            active_difference=active_b - active_a,
            arithmetic_a=arithmetic_a.get(name, ""),
            arithmetic_b=arithmetic_b.get(name, ""),
        )
        for name, (total_a, total_b, active_a, active_b) in differing.items()
    ]
