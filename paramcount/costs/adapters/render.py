"""Adapters as tables: one row per module pattern and the total, or one row per adapter with a number of parameters."""

from __future__ import annotations

from collections.abc import Callable

from paramcount.costs.adapters.adapters import NAMES, Lora
from paramcount.costs.adapters.search import AdapterSearch
from paramcount.counting.count import SCHEMA_VERSION
from paramcount.output.numbers import format_bytes
from paramcount.output.tables import Column, Table

LAYER = "{layer}."
VERSION = "schema_version"
KINDS = {"": "", "adapter": "", "saved": "whole", "bias": "bias"}


def build_adapter_table(adapter: Lora) -> Table:
    """One row per pattern of modules, summed over its layers."""
    columns = [
        Column("module", "module", right=False, show=shorten_names(adapter), shortens=True),
        Column("shape", "weight", right=False),
        Column("copies", "modules", optional=1),
        Column("rank", "rank", show=lambda rank: f"{rank:,}" if rank else "", optional=2),
        Column("parameters", "trainable"),
        Column("kind", "", right=False, show=KINDS.__getitem__),
    ]
    rows: list[list[object]] = []
    for module in adapter.modules:
        shape = " × ".join(f"{n:,}" for n in module.shape)
        rows.append([module.name, shape, module.copies, module.rank, module.parameters, module.kind])
    if all(module.kind == "adapter" for module in adapter.modules):
        columns[-1] = columns[-1]._replace(only="csv")
    if adapter.r is None:
        columns[3] = columns[3]._replace(only="csv")
    total = sum(module.copies for module in adapter.modules)
    rows.append(["total", "", total, None, adapter.trainable, ""])
    return Table(columns, rows, adapter.to_dict(), above=describe_adapter(adapter), bold=("total",))


def shorten_names(adapter: Lora) -> Callable[[str], str]:
    """A function that leaves out what precedes the layer's index, if that is the same for all layers."""
    names = [module.name for module in adapter.modules]
    prefixes = {name.partition(LAYER)[0] for name in names if LAYER in name}
    prefix = prefixes.pop() + LAYER if len(prefixes) == 1 else ""
    return lambda name: "…" + name.removeprefix(prefix) if prefix and name.startswith(prefix) else name


def describe_adapter(adapter: Lora) -> list[str]:
    """The lines above: the answer, and how large a saved adapter is."""
    rank = "" if adapter.r is None else f", rank {adapter.r:,}"
    share = f"{adapter.trainable_percent:.4f}% of {adapter.total:,}"
    options = {
        "targets": adapter.targets,
        "pattern": adapter.target_pattern and (adapter.target_pattern,),
        "parameters": adapter.target_parameters,
        "without": adapter.exclude_modules or (adapter.exclude_pattern and (adapter.exclude_pattern,)),
        "layers": [str(i) for i in adapter.layers_to_transform or ()],
    }
    words = [f"{kind} {', '.join(names)}" for kind, names in options.items() if names]
    lines = [
        f"{adapter.name}   {NAMES[adapter.method]}{rank}, {', '.join(words)}",
        f"trainable: {adapter.trainable:,} parameters, {share}",
    ]
    projection = f", with {adapter.projection:,} values of the shared random matrices" if adapter.projection else ""
    return [*lines, f"saved adapter in {adapter.dtype}: {format_bytes(adapter.adapter_bytes)}{projection}"]


# ---- searches


def build_search_table(*searches: AdapterSearch) -> Table:
    """One row per explanation of each model, the simplest first."""
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
