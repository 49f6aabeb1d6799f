"""The tensors that training changes: those of adapters, and those of modules that are trained as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import NamedTuple

from paramcount.costs.adapters.sites import Site
from paramcount.flow import TensorRow


class TrainedModule(NamedTuple):
    """Modules of one name pattern with an adapter, or trained as a whole."""

    name: str  # "{layer}" stands for an index
    component: str
    kind: str  # adapter | saved | bias
    shape: tuple[int, ...]  # of the module's weight; of stacked experts with their number first
    copies: int  # number of such modules
    rank: int | None  # None of IA³, and of what is trained as a whole
    parameters: int  # trainable ones of all copies


class TrainedTensor(NamedTuple):
    """Tensors of one shape that have gradients and a state of the optimiser."""

    row: TensorRow  # with the layers of the module that it belongs to
    copies: int
    kind: str  # as of TrainedModule


def list_trained_tensors(
    sites: Iterable[tuple[Site, int]], method: str, others: Iterable[TrainedModule]
) -> Iterator[TrainedTensor]:
    """The tensors of LoRA and DoRA in the layers with a rank each, and of modules that are trained as a whole.

    Source: peft 0.21.2, tuners/lora/layer.py, update_layer, and tuners/lora/dora.py (a magnitude per output).
    """
    for site, rank in sites:
        experts, outputs, inputs = site.sizes
        shapes: dict[str, tuple[int, ...]] = {"lora_A": (experts * rank, inputs), "lora_B": (outputs, experts * rank)}
        if method == "dora":
            shapes["lora_magnitude_vector"] = (outputs,)
        for name, matrix in shapes.items():
            row = site.row._replace(name=f"{site.name}.{name}", matrix=matrix, splits=(), axis=0, stacked=None)
            yield TrainedTensor(row._replace(tied_to=None), site.copies, "adapter")
    for module in others:
        per_copy = module.parameters // module.copies
        shape = module.shape if prod(module.shape) == per_copy else (per_copy,)  # with its bias
        yield TrainedTensor(TensorRow(module.name, shape, module.component, "decoder"), module.copies, module.kind)
