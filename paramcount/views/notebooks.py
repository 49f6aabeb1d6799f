"""Tables that only notebooks show: of a count and of a difference, which the commands print with more around them."""

from __future__ import annotations

from typing import Any

from paramcount.counting import Count
from paramcount.output.numbers import format_count
from paramcount.output.tables import Column, Table
from paramcount.sizes.values import format_size
from paramcount.views.diff import Difference
from paramcount.views.forward_settings import format_setting


def build_count_table(count: Count) -> Table:
    """The components, and the total."""
    columns = [Column("component", "component", right=False), Column("parameters", "parameters")]
    rows: list[list[Any]] = [[name, n] for name, n in count.components.items() if n]
    if count.active != count.total:
        columns.append(Column("active", "active"))
        rows = [[name, n, count.active_components[name]] for name, n in rows]
    rows.append(["total", count.total, count.active][: len(columns)])
    heading = f"{count.id}: {count.total:,} parameters ({format_count(count.total)})"
    return Table(columns, rows, None, above=[heading])


def build_difference_table(difference: Difference) -> Table:
    """The sizes and components that differ."""
    columns = [
        Column("name", "", right=False),
        *(Column(name, name, show=format_size) for name in (difference.a, difference.b)),
        Column("difference", "difference", show=lambda n: "" if n is None else f"{n:+,}".replace("-", "−")),
    ]
    sizes = [
        [size.name, "–" if size.only == "b" else size.a, "–" if size.only == "a" else size.b, None]
        for size in difference.sizes
    ]
    sizes += [
        [setting.name, *map(format_setting, (setting.a or ("–",), setting.b or ("–",))), None]
        for setting in difference.settings
    ]
    components = [[part.component, part.a, part.b, part.difference] for part in difference.components]
    total = ["total", difference.total_a, difference.total_b, difference.difference]
    rows = [*sizes, *components, total]
    above, below = [f"{difference.a} → {difference.b}"], difference.release_differences
    return Table(columns, rows, None, above=above, below=below)
