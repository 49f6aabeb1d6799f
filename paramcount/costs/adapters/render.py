"""An adapter as a table: one row per module pattern and the total."""

from __future__ import annotations

from collections.abc import Callable

from paramcount.costs.adapters.adapters import NAMES, Lora
from paramcount.output.numbers import format_bytes
from paramcount.output.tables import Column, Table

LAYER = "{layer}."
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
