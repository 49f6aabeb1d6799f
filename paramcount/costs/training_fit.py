"""Whether a training fits the memory of its devices, the largest micro-batch, and what makes it fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from paramcount.costs.devices import FITS, Device
from paramcount.costs.fit import LARGEST_BATCH, Suggestion, find_largest
from paramcount.costs.training_setup import Setup
from paramcount.counting.results import to_plain


class TrainingFit(NamedTuple):
    """Whether a training fits the memory of each device."""

    verdict: str  # one of devices.VERDICTS
    device: str
    devices: int
    memory_bytes: int
    overhead_bytes: int  # assumed, on each device
    margin_bytes: int  # that must be free for "fits"
    needed_bytes: int  # on the fullest device, overhead included
    free_bytes: int  # negative if that is more than the device has
    largest_batch: int | None  # sequences per micro-batch that fit; 0: none; None: no limit
    suggestions: tuple[Suggestion, ...] = ()  # what makes it fit, the mildest first

    @property
    def fits(self) -> bool:
        """Whether the verdict is "fits": neither "does not fit" nor "too close to call"."""
        return self.verdict == FITS

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        return {**to_plain(self._asdict()), "fits": self.fits}


def fit_training(setup: Setup, device: Device, find_size: Callable[[Setup], int]) -> TrainingFit:
    """Whether a training fits. `find_size`: bytes that a setup takes on the fullest GPU."""
    needed, overhead = find_size(setup), device.assume_overhead()

    def fits(batch: int) -> bool:
        return device.judge(find_size(setup._replace(batch=batch)), overhead) == FITS

    fit = TrainingFit(
        verdict=device.judge(needed, overhead),
        device=device.name,
        devices=setup.gpus,
        memory_bytes=device.memory_bytes,
        overhead_bytes=overhead.usual,
        margin_bytes=device.margin_bytes,
        needed_bytes=needed + overhead.usual,
        free_bytes=device.usable_bytes - needed,
        largest_batch=find_largest(fits, None, LARGEST_BATCH),
    )
    return fit if fit.fits else fit._replace(suggestions=list_suggestions(setup, device, find_size))


def list_suggestions(setup: Setup, device: Device, find_size: Callable[[Setup], int]) -> tuple[Suggestion, ...]:
    """Changes of the setup that make it fit, the cheapest first, none of which has one before it and more."""
    found: list[Suggestion] = []
    for changed in list_savings(setup):
        options = find_changes(setup, changed)
        if any(suggestion.options.items() <= options.items() for suggestion in found):
            continue
        size = find_size(changed)
        if device.judge(size, device.assume_overhead()) == FITS:
            found.append(Suggestion(options, device.usable_bytes - size))
    return tuple(found)


def list_savings(setup: Setup) -> list[Setup]:
    sharded = setup._replace(zero=3) if setup.dp > 1 else setup
    recomputed = setup._replace(checkpointing="full")
    both = sharded._replace(checkpointing="full")
    candidates = [setup._replace(flash_attention=True), sharded, recomputed, both, both._replace(batch=1)]
    candidates.append(both._replace(batch=1, optimizer="adamw8bit"))
    return [candidate for candidate in candidates if candidate != setup]


def find_changes(setup: Setup, changed: Setup) -> Mapping[str, object]:
    """The options that differ: {"zero": 3, "checkpointing": "full"}."""
    return {name: value for name, value in changed._asdict().items() if value != getattr(setup, name)}
