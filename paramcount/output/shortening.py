"""Tables that fit a narrow terminal: fewer columns, and names of tensors shortened in the middle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from paramcount.output.tables import Column
from paramcount.output.terminal import measure_text

READABLE = 40  # columns; optional columns are left out until shortened names have as much space
NARROWEST = 12  # columns of a shortened name
SHORTEST_END = 8  # columns of the end of a name behind the index of its layer


def fit_columns(columns: Sequence[Column], cells: Sequence[list[str]], width: int) -> tuple[list[int], int]:
    """The indices of the columns to show, and the space of the column that may be shortened. Optional columns are left
    out, highest number first, until names have READABLE columns or are not shortened at all."""
    widths = [max(map(measure_text, (c.label, *(row[i] for row in cells)))) for i, c in enumerate(columns)]
    name = next(i for i, column in enumerate(columns) if column.shortens)
    shown = [i for i, n in enumerate(widths) if n]
    space = measure_space(widths, shown, name, width)
    for i in sorted(shown, key=lambda i: columns[i].optional, reverse=True):
        if space >= min(widths[name], READABLE) or not columns[i].optional:
            break
        shown.remove(i)
        space = measure_space(widths, shown, name, width)
    return shown, min(widths[name], max(space, min(width, NARROWEST)))


def measure_space(widths: Sequence[int], shown: Sequence[int], name: int, width: int) -> int:
    """The space that the other columns leave to the one named `name`."""
    return width - sum(widths[i] + 2 for i in shown if i != name)


def shorten_name(name: str, width: int) -> str:
    """A dotted name in at most `width` columns, with ellipses instead of whole modules. The index of the layer and the
    last module stay; without space for both, the end of the name stays.

    >>> name = "model.layers.6.shared_transformer.feed_forward.gate_up_proj.weight"
    >>> shorten_name(name, 80) == name
    True
    >>> shorten_name(name, 50), shorten_name(name, 30), shorten_name(name, 14), shorten_name(name, 8)
    ('model.layers.6…feed_forward.gate_up_proj.weight', '…layers.6…gate_up_proj.weight', '…6…proj.weight', '….weight')
    """
    return list_short_names(name, width)[0]


def shorten_names(names: Iterable[str], width: int) -> dict[str, str]:
    """{name: a form of it in at most `width` columns}: the best form that stands for no other of these names, if any.

    >>> names = ["decoder.layers.{layer}.self_attn.k.weight", "decoder.layers.{layer}.cross_attn.k.weight"]
    >>> list(shorten_names(names, 25).values())
    ['…{layer}…lf_attn.k.weight', '…{layer}…ss_attn.k.weight']
    """
    forms = {name: list_short_names(name, width) for name in names}
    uses = Counter(form for candidates in forms.values() for form in candidates)
    return {
        name: next((form for form in candidates if uses[form] == 1), candidates[0])
        for name, candidates in forms.items()
    }


def list_short_names(name: str, width: int) -> list[str]:
    """The forms of a name in at most `width` columns, best first: without whole modules, then without some letters."""
    if measure_text(name) <= width:
        return [name]
    parts = name.split(".")
    end = max(i for i, part in enumerate(parts) if i == 0 or is_module(part))
    layer = next((i for i, part in enumerate(parts[:end]) if part == "{layer}" or part.isdecimal()), 0)
    starts = [".".join(parts[: layer + 1])]
    if layer:
        starts += [f"…{parts[layer - 1]}.{parts[layer]}", f"…{parts[layer]}"]
    ends = [".".join(parts[i:]) for i in range(layer + 2, end + 1)]
    shorter = [f"{start}…{rest}" for start in starts for rest in ends]
    shorter += [f"{start}.{'.'.join(parts[layer + 1 :])}" for start in starts[1:]]
    shorter += [] if layer else [f"…{rest}" for rest in ends]
    fitting = [short for short in shorter if measure_text(short) <= width]
    if layer:
        cuts = [f"{start}…" for start in (starts[-1], *starts[:-1])]
    else:
        cuts = ["…", *(f"{name[:n]}…" for n in range(SHORTEST_END, width, SHORTEST_END))]
    cuts = [start for start in cuts if measure_text(start) + SHORTEST_END < width] or ["…"]
    return sorted(dict.fromkeys(fitting), key=len, reverse=True) + [cut_start(name, start, width) for start in cuts]


def cut_start(name: str, start: str, width: int) -> str:
    rest = name
    while rest and measure_text(start + rest) > width:
        rest = rest[1:]
    return start + rest


def is_module(part: str) -> bool:
    """Whether a part of a dotted name is the name of a module, rather than an index or a parameter of the module."""
    return part not in ("weight", "bias", "{layer}") and not part.isdecimal()
