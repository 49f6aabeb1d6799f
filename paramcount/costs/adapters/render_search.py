"""The adapters with a number of trainable parameters as a table: one row per explanation, the simplest first."""

from __future__ import annotations

from collections.abc import Sequence

from paramcount.costs.adapters.adapters import NAMES
from paramcount.costs.adapters.search import AdapterSearch
from paramcount.counting.count import SCHEMA_VERSION
from paramcount.output.tables import Column, Table

VERSION = "schema_version"


def build_search_table(searches: Sequence[AdapterSearch]) -> Table:
    """One row per explanation of each model."""
    columns = [
        Column("model", "model", right=False, only="csv" if len(searches) == 1 else ""),
        Column("method", "method", right=False, show=NAMES.__getitem__),
        Column("r", "rank"),
        Column("trainable", "trainable"),
        Column("total", "of", only="csv"),
        Column("modules_to_save", "trained as a whole", right=False),
        Column("targets", "targets", right=False),
    ]
    rows: list[list[object]] = []
    for search in searches:
        for method, r, targets, saved, trainable, total, _ in search.explanations:
            rows.append([search.id, method, r, trainable, total, ", ".join(saved), targets])
    if not any(row[5] for row in rows):
        columns[5] = columns[5]._replace(only="csv")
    found = [{name: value for name, value in search.to_dict().items() if name != VERSION} for search in searches]
    data = {VERSION: SCHEMA_VERSION, "figures": [], "adapters": found}
    above = [describe_search(search) for search in searches]
    return Table(columns, rows, data, above, wraps=True, headings=bool(rows))


def describe_search(search: AdapterSearch) -> str:
    """The answer: how many adapters have as many trainable parameters."""
    n = len(search.explanations) + search.more
    if n == 0:
        return f"{search.name}   no adapter has {search.trainable} trainable parameters"
    first = search.explanations[0]
    saved = f", with {' and '.join(first.modules_to_save)} trained as a whole" if first.modules_to_save else ""
    answer = f"{NAMES[first.method]}, rank {first.r:,}, {first.targets}{saved}"
    others = f"; {n - 1} other explanation{'s' if n > 2 else ''}" if n > 1 else ""
    listed = f" ({search.more} not listed)" if search.more else ""
    return f"{search.name}   {search.trainable} trainable parameters: {answer}{others}{listed}"


def build_html_table(search: AdapterSearch) -> Table:
    """The table of one search, for a notebook."""
    return build_search_table([search])
