"""What an explanation holds: plain data with named fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from paramcount.counting.count import SCHEMA_VERSION


class Size(NamedTuple):
    """A row of the legend."""

    name: str  # as in the formulas: "d_model", "vision.d_model"
    value: int
    meaning: str  # in words; "" where nobody says
    key: str  # of config.json, or one of several; "" where the size is derived


class Line(NamedTuple):
    """One formula with its value, to be checked by hand."""

    component: str  # of the overview: "qkv"
    detail: str  # what of it, where it is opened: "qkv.q"; else ""
    part: str  # decoder, encoder, cross_attention, vision …
    layers: str  # of which layers, where it is of one kind of them: "28 mamba layers"; "outside layers"; else ""
    of: str  # weights | biases
    formula: str  # in named sizes
    numbers: str  # the same with this model's
    value: int  # parameters
    active: int  # those of them that one token uses
    note: str  # "tied to embedding"
    latex: str  # the formula in LaTeX's mathematics
    latex_numbers: str


class Component(NamedTuple):
    """A component of the overview; its lines sum to it."""

    name: str
    value: int
    active: int
    lines: tuple[Line, ...]


class Visit(NamedTuple):
    """Equal experts, those of them that one token visits, and the rest."""

    component: str  # "experts"
    layers: int  # that have them
    kind: str  # of these layers; "" where all are alike
    experts: int  # of each layer
    visited: int  # of each layer by one token, at most
    least: int  # and at least
    formula: str  # of one expert
    numbers: str
    one: int  # parameters of one expert
    all: int  # of all experts of all these layers
    used: int  # of those that a token visits
    rest: int  # of those that it does not


@dataclass(frozen=True)
class Explanation:
    """Where a number comes from, formula by formula: of a model, of one of its layers, or of one attention head."""

    id: str
    name: str
    of: str  # model | layer | head
    subject: str  # in words: "layer 2 of model.layers: dense, like 0–2"; "" of a model
    total: int  # all components sum to it
    active: int  # what one token uses: total less the rest of every visit
    sizes: tuple[Size, ...]  # the legend, in the order of the declaration
    kept: tuple[Size, ...]  # sizes on which the structure depends: numbers in every formula
    components: tuple[Component, ...]
    visits: tuple[Visit, ...]
    beside: tuple[Component, ...]  # in no total: MTP layers, buffers; of a head its biases and what all heads share
    changes: tuple[str, ...]  # of a what-if: what was changed, and the difference it makes to the model
    remarks: tuple[str, ...]  # other stacks that have layers, how heads share keys and values

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines that sum to the total."""
        return tuple(line for component in self.components for line in component.lines)

    def _repr_html_(self) -> str:
        """The formulas as a table, for notebooks."""
        from paramcount.explaining.render_tables import table
        from paramcount.output.tables import html_fragment

        return html_fragment(table(self))

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        return {"schema_version": SCHEMA_VERSION, **{name: plain(value) for name, value in self.__dict__.items()}}


def plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: plain(inner) for name, inner in value._asdict().items()}
    return [plain(inner) for inner in value] if isinstance(value, tuple) else value
