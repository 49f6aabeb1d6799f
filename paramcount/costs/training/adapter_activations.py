"""Which matrices of a flow are frozen, which take an adapter, and what an adapter keeps for the backward pass.

A frozen matrix needs no input for its own gradient; its adapter keeps the input of A and that of B. peft casts the
input of each adapter to the adapter's dtype, so that one in another dtype than the activations keeps a copy per module.
DoRA keeps the outputs of the matrix and of its adapter besides, for the gradient of its magnitudes.

Sources: peft 0.21.2, tuners/lora/layer.py, Linear.forward, tuners/tuners_utils.py, _cast_input_dtype and
cast_adapter_dtype, and tuners/lora/dora.py, DoraLinearLayer.forward.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from paramcount.costs.adapters.adapters import Lora
from paramcount.costs.adapters.reference_tensors import name_in_reference, rename
from paramcount.costs.adapters.targets import is_inside
from paramcount.costs.training.setup import PRECISIONS, Setup
from paramcount.counting.quantisation.storage import merge_facts
from paramcount.flow.operation import Form
from paramcount.flow.walk import Step, fold_weight
from paramcount.sizes import Sizes

MATRICES = (Form.LINEAR, Form.LINEAR_PER_HEAD, Form.CONVOLUTION)  # that need their input for their own gradient only


class TrainedWeights(NamedTuple):
    """What is trained of one operation's weights."""

    whole: bool = False  # the weights themselves
    modules: int = 0  # adapters: several if the reference has several matrices where a checkpoint has one
    rank: int = 0  # of these together

    @property
    def is_any(self) -> bool:
        return self.whole or self.modules > 0


FROZEN = TrainedWeights()


class Adapted:
    """What of a model an adapter trains, for the walk over its activations."""

    def __init__(self, adapter: Lora, sizes: Sizes, setup: Setup) -> None:
        self.modules, self.renamed = merge_facts(sizes).modules, sizes.reference_names
        self.ranks = {module.name: module.rank or 0 for module in adapter.modules if module.kind == "adapter"}
        self.whole = tuple(module.name for module in adapter.modules if module.kind != "adapter")
        self.experts = {
            module.component.endswith(".down"): module.rank or 0
            for module in adapter.modules
            if module.kind == "adapter" and module.component.partition(".")[0] == "experts"
        }
        self.only = adapter.layers_to_transform
        self.is_dora = adapter.method == "dora"
        adapter_bytes = get_adapter_bytes(adapter)
        self.value_bytes = PRECISIONS[setup.precision].activations
        self.copies_inputs = adapter_bytes != self.value_bytes
        # Under autocast (mixed precision), the product casts the copy back.
        self.kept_bytes = self.value_bytes if PRECISIONS[setup.precision].master else adapter_bytes

    def find_training(self, step: Step) -> TrainedWeights:
        """What is trained of the weights of an operation."""
        data, inside, repeats, part = step
        if not data.weights:
            return FROZEN
        row = fold_weight(data.weights[0], inside, repeats, part)
        if row.component.partition(".")[0] == "experts":
            rank = self.experts.get(row.component.endswith(".down"), 0)
            return TrainedWeights(modules=1 if rank else 0, rank=rank)
        names = [rename(name, self.renamed) for name in name_in_reference(row.name, self.modules)]
        modules = [name.removesuffix(".weight") for name in names]
        found = [self.ranks[name] for name in modules if name in self.ranks]
        return TrainedWeights(any(is_inside(name, self.whole) for name in modules), len(found), sum(found))

    def needs_input(self, training: TrainedWeights) -> bool:
        """Whether the backward pass reads the input itself, not a copy."""
        return training.whole or (training.modules > 0 and not self.copies_inputs)

    def count_extra(self, training: TrainedWeights, step: Step, elements: tuple[int, int]) -> int:
        """Bytes that the adapters of an operation keep besides its input. `elements`: of input and output."""
        data = step[0]
        of_input, of_output = elements
        rows = of_input // max(1, prod(int(size) for size in data.inputs[0].shape[1:]))
        extra = rows * training.rank * self.kept_bytes  # what B reads
        if self.copies_inputs:
            extra += training.modules * of_input * self.kept_bytes
        if self.is_dora:
            extra += of_output * (self.value_bytes + self.kept_bytes)
        return extra


def get_adapter_bytes(adapter: Lora) -> int:
    """The bytes of one value of the adapter."""
    return 4 if adapter.dtype == "FP32" else 2
