"""A picture of what a parameter count is: matrices of GPT-2 small to scale, a layer of them, and the sum."""

from __future__ import annotations

from collections.abc import Iterator

from paramcount.counting.count import Count
from paramcount.drawing.colours import COLOURS
from paramcount.explore.article.elements import Html, element, join
from paramcount.explore.article.parameters import draw_bar
from paramcount.zoo import count_model, load_entry
from paramcount.zoo.what_if import get_size

MODEL = "gpt2-small"
NAMES = {  # {matrix of a layer: its name}
    "attn.c_attn": "queries, keys, values",
    "attn.c_proj": "attention output",
    "mlp.c_fc": "MLP, up",
    "mlp.c_proj": "MLP, down",
}
PIXELS = 17  # rows or columns per unit of the drawing
GRID = 8  # units between the lines of a grid


def draw_lesson() -> Html:
    """Three figures: one matrix, one layer, the model."""
    model = load_entry(MODEL)
    count = count_model(model)
    shapes = {
        name: tensor.matrix for name in NAMES for tensor in count.tensors if tensor.name == f"h.{{layer}}.{name}.weight"
    }
    (rows, columns), layers = shapes["attn.c_attn"], get_size(model.sizes, "n_layers")
    first = element(
        "figure",
        draw_matrix(rows, columns, COLOURS["qkv"]),
        element(
            "figcaption", element("b", "A weight is a matrix of learned numbers. "),
            f"In {model.name}, a matrix that makes queries, keys and values has {rows:,} × {columns:,} = ",
            element("b", rows * columns), " parameters. Each square here stands for ", (GRID * PIXELS) ** 2, ".",
        ),
    )  # fmt: skip
    pictures = [
        element("div", draw_matrix(rows, columns, COLOURS[find_component(count, name)]), element("small", NAMES[name]))
        for name, (rows, columns) in shapes.items()
    ]
    weights = sum(rows * columns for rows, columns in shapes.values())
    second = element(
        "figure",
        element("div", *pictures, class_="matrices"),
        element(
            "figcaption", element("b", "A layer has a few of them. "),
            " + ".join(f"{rows * columns:,}" for rows, columns in shapes.values()), " = ", element("b", weights),
            ", to the same scale.",
        ),
    )  # fmt: skip
    third = element(
        "figure", draw_bar(count.components), element("figcaption", *describe_total(count, layers, weights))
    )
    return element("div", first, second, third, class_="lesson")


def find_component(count: Count, name: str) -> str:
    component = next(tensor.component for tensor in count.tensors if tensor.name == f"h.{{layer}}.{name}.weight")
    return component.partition(".")[0]


def draw_matrix(rows: int, columns: int, colour: str) -> Html:
    """A matrix to scale, with a grid."""
    width, height = columns / PIXELS, rows / PIXELS
    lines = [f"M{x} 0V{height:.1f}" for x in range(GRID, int(width) + 1, GRID)]
    lines += [f"M0 {y}H{width:.1f}" for y in range(GRID, int(height) + 1, GRID)]
    return element(
        "svg",
        element("rect", width=f"{width:.1f}", height=f"{height:.1f}", fill=colour),
        element("path", d="".join(lines), class_="lines"),
        viewBox=f"0 0 {width:.1f} {height:.1f}", width=round(width), height=round(height), role="img",
        aria_label=f"{rows:,} rows and {columns:,} columns",
    )  # fmt: skip


def describe_total(count: Count, layers: int, weights: int) -> Iterator[Html | str]:
    """The sum over the model."""
    components = count.components
    rest = count.total - layers * weights - components["embedding"] - components["position"]
    yield element("b", "The model is the sum. ")
    yield f"{layers} layers × {weights:,} + embedding {components['embedding']:,} + positions "
    yield f"{components['position']:,} + biases and norms {rest:,} = "
    yield join((element("b", count.total), "."))
