"""The state that an optimiser keeps for each tensor, in bytes.

Step counters are left out: torch keeps them in the CPU's memory.

Sources: torch 2.13.0, torch/optim: adamw.py, sgd.py, _adafactor.py and _muon.py, `_init_group`; bitsandbytes 0.50,
optim/optimizer.py, Optimizer2State.init_state and Optimizer8bit.get_state_buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

from paramcount.flow import TensorRow

BLOCK_8BIT = 256  # values that share a scale in an 8-bit state
LEAST_8BIT = 4096  # values below which a tensor's state stays in FP32
LEAST_PAGED = 100_000  # values below which a tensor's state is not paged
NOT_HIDDEN = ("embedding", "other_embedding", "position", "lm_head")  # their matrices are not for Muon


class Optimizer(NamedTuple):
    """An optimiser and its state."""

    label: str
    state: str  # in words
    count_bytes: Callable[[TensorRow, int], int]  # of one tensor, with values of so many bytes
    is_paged: bool = False  # whether the state lies in unified memory, which moves to the CPU if the GPU is full

    def pages(self, tensor: TensorRow) -> bool:
        """Whether the state of a tensor need not be on the GPU."""
        return self.is_paged and prod(tensor.shape) >= LEAST_PAGED


def count_adamw8bit(tensor: TensorRow, value_bytes: int) -> int:
    """Small tensors keep FP32; of the others, every block has a scale in FP32 for each of the two states."""
    n = prod(tensor.shape)
    return 2 * 4 * n if n < LEAST_8BIT else 2 * (n + 4 * -(-n // BLOCK_8BIT))


def count_adafactor(tensor: TensorRow, value_bytes: int) -> int:
    """A vector keeps its variance; a matrix one value per row and one per column."""
    n = prod(tensor.shape)
    if len(tensor.shape) < 2:
        return n * value_bytes
    rows, columns = tensor.shape[-2:]
    factors: int = n // columns + n // rows
    return factors * value_bytes


def count_muon(tensor: TensorRow, value_bytes: int) -> int:
    """Momentum for the matrices of hidden layers; everything else has the state of AdamW."""
    is_hidden_matrix = len(tensor.matrix) == 2 and tensor.component.partition(".")[0] not in NOT_HIDDEN
    return (1 if is_hidden_matrix else 2) * prod(tensor.shape) * value_bytes


OPTIMIZERS: Mapping[str, Optimizer] = {
    "adamw": Optimizer("AdamW", "momentum and variance", lambda tensor, size: 2 * prod(tensor.shape) * size),
    "adamw8bit": Optimizer("8-bit AdamW", "momentum and variance in 8 bits with scales", count_adamw8bit),
    "paged-adamw": Optimizer(
        "Paged AdamW", "momentum and variance in FP32", lambda tensor, size: 2 * 4 * prod(tensor.shape), is_paged=True
    ),
    "paged-adamw8bit": Optimizer(
        "Paged 8-bit AdamW", "momentum and variance in 8 bits with scales", count_adamw8bit, is_paged=True
    ),
    "adafactor": Optimizer("Adafactor", "factored variance", count_adafactor),
    "muon": Optimizer("Muon", "momentum, and variance outside of hidden matrices", count_muon),
    "sgd": Optimizer("SGD with momentum", "momentum", lambda tensor, size: prod(tensor.shape) * size),
}
