"""The data of an explanation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from paramcount.counting.count import SCHEMA_VERSION
from paramcount.counting.results import JsonResult, alias, to_plain


class Size(NamedTuple):
    """A size in the formulas."""

    name: str  # as in the formulas: "d_model", "vision.d_model"
    value: int
    meaning: str  # in words; "" if unknown
    key: str  # the config.json key, or several; "" if the size is derived


class Line(NamedTuple):
    """One formula with its value."""

    component: str  # of the overview: "qkv"
    detail: str  # "qkv.q" if the component has several lines; else ""
    part: str  # decoder, encoder, cross_attention, vision …
    layers: str  # the layers it applies to, if not all: "58 MoE layers"; "outside layers"; else ""
    of: str  # weights | biases
    formula: str  # in named sizes
    numbers: str  # the formula with this model's values
    value: int  # parameters
    active: int  # parameters that one token uses
    note: str  # "tied to embedding"
    latex: str  # the formula in LaTeX
    latex_numbers: str


class Component(NamedTuple):
    """A component of the overview, the sum of its lines."""

    name: str
    value: int
    active: int
    lines: tuple[Line, ...]


class ExpertGroup(NamedTuple):
    """Experts of equal size: the parameters of all, of the active and of the inactive ones."""

    component: str  # "experts"
    layers: int  # number of layers that have them
    kind: str  # the kind of these layers; "" if all layers have them
    experts: int  # per layer
    visited: int  # experts per token and layer, at most
    least: int  # experts per token and layer, at least
    formula: str  # of one expert
    numbers: str
    one: int  # parameters of one expert
    all: int  # parameters of all experts in all these layers
    used: int  # of the active experts
    rest: int  # of the inactive experts


JSON_NAMES = {"fixed_sizes": "kept", "expert_groups": "visits", "not_included": "beside"}


@dataclass(frozen=True, repr=False)
class Explanation(JsonResult):
    """The formulas behind a parameter count of a model, one of its layers, or one of its attention heads."""

    html_table = "paramcount.explaining.render_tables:build_explanation_table"

    id: str
    name: str
    of: str  # model | layer | head
    subject: str  # in words: "layer 2 of model.layers (dense; identical layers: 0–2)"; "" for a model
    total: int  # the sum of all components
    active: int  # parameters that one token uses: total minus the inactive experts
    sizes: tuple[Size, ...]  # the sizes in the formulas, in the order in which the architecture declares them
    fixed_sizes: tuple[Size, ...]  # sizes that the structure depends on; the formulas contain their values
    components: tuple[Component, ...]
    expert_groups: tuple[ExpertGroup, ...]
    not_included: tuple[Component, ...]  # MTP layers and buffers; for a head its biases and the weights all heads share
    changes: tuple[str, ...]  # for a what-if: the changed sizes and the difference
    notes: tuple[str, ...]  # parameters outside the total, other stacks, heads that share keys and values

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines whose sum is the total."""
        return tuple(line for component in self.components for line in component.lines)

    kept = alias("fixed_sizes")
    visits = alias("expert_groups")
    beside = alias("not_included")
    remarks = alias("notes")

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data for JSON, with the field names of version 0.1."""
        fields = {JSON_NAMES.get(name, name): to_plain(value) for name, value in self.__dict__.items()}
        return {"schema_version": SCHEMA_VERSION, **fields, "remarks": list(self.notes)}
