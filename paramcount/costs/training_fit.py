"""Whether a training fits the memory of its devices, the largest micro-batch, and what makes it fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from paramcount.costs.fit import LARGEST_BATCH, Device, find_largest
from paramcount.costs.training_setup import Setup


class TrainingFit(NamedTuple):
    """Whether a training fits the memory of each device."""

    device: str
    devices: int
    memory_bytes: int
    overhead_bytes: int  # assumed, on each device
    needed_bytes: int  # on the fullest device, overhead included
    free_bytes: int  # negative if it does not fit
    largest_batch: int  # sequences per micro-batch that fit; 0 if none does
    advice: str = ""  # what makes it fit

    @property
    def fits(self) -> bool:
        return self.free_bytes >= 0


def fit_training(setup: Setup, device: Device, find_size: Callable[[Setup], int]) -> TrainingFit:
    """Whether a training fits. `find_size`: bytes that a setup takes on the fullest GPU."""
    needed = find_size(setup)
    fit = TrainingFit(
        device=device.name,
        devices=setup.gpus,
        memory_bytes=device.memory_bytes,
        overhead_bytes=device.overhead_bytes,
        needed_bytes=needed + device.overhead_bytes,
        free_bytes=device.usable_bytes - needed,
        largest_batch=find_largest(lambda n: find_size(setup._replace(batch=n)) <= device.usable_bytes, LARGEST_BATCH),
    )
    if fit.fits:
        return fit
    for changed in list_savings(setup):
        if find_size(changed) <= device.usable_bytes:
            return fit._replace(advice=f"{describe_changes(setup, changed)} makes it fit")
    return fit


def list_savings(setup: Setup) -> list[Setup]:
    """Setups that take less memory, from the cheapest change."""
    sharded = setup._replace(zero=3) if setup.dp > 1 else setup
    recomputed = setup._replace(checkpointing="full")
    both = sharded._replace(checkpointing="full")
    candidates = [setup._replace(flash_attention=True), sharded, recomputed, both, both._replace(batch=1)]
    candidates.append(both._replace(batch=1, optimizer="adamw8bit"))
    return [candidate for candidate in candidates if candidate != setup]


def describe_changes(setup: Setup, changed: Setup) -> str:
    """The options that differ: "--zero 3 --checkpointing full"."""
    options = []
    for name, value in changed._asdict().items():
        if value != getattr(setup, name):
            options.append("flash attention" if name == "flash_attention" else f"--{name} {value}")
    return " ".join(options)
