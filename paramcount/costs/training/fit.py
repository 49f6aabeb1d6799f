"""Whether a training fits the memory of its devices, the largest micro-batch, and what makes it fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from paramcount.costs.devices import FITS, Device, Overhead, judge
from paramcount.costs.fit import LARGEST_BATCH, Suggestion, find_largest
from paramcount.costs.training.setup import PLAIN_WEIGHTS, Setup
from paramcount.costs.training.shares import TrainingShare
from paramcount.counting.results import to_plain

# What implementations may keep besides the activations, in percent of these. LitGPT, with norms in FP32 and copies for
# dropout, takes 1.46 to 1.59 times the activations, and 1.86 to 2.14 times beside 4-bit weights, whose inputs
# bitsandbytes 0.41 keeps as well (tests/data/logged/training.csv).
KEPT_BESIDES, KEPT_BESIDES_PACKED = 60, 120


class TrainingFit(NamedTuple):
    """Whether a training fits the memory of each device."""

    verdict: str  # one of devices.VERDICTS
    device: str
    devices: int
    memory_bytes: int
    overhead_bytes: int  # assumed, on each device
    margin_bytes: int  # that must be free for "fits"
    kept_percent: int  # of the activations, which the margin includes
    gathered_bytes: int  # of frozen weights that FSDP may not divide, which the margin includes
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


def fit_training(setup: Setup, device: Device, find_share: Callable[[Setup], TrainingShare]) -> TrainingFit:
    """Whether a training fits. `find_share`: what a setup takes on the fullest GPU."""
    share = find_share(setup)
    overhead = estimate_overhead(setup, share, device)

    def measure_slack(batch: int) -> int:
        changed = setup._replace(batch=batch)
        larger = find_share(changed)
        return device.budget_bytes - larger.total_bytes - estimate_overhead(changed, larger, device).most

    fit = TrainingFit(
        verdict=judge_training(setup, share, device),
        device=device.name,
        devices=setup.gpus,
        memory_bytes=device.memory_bytes,
        overhead_bytes=overhead.usual,
        margin_bytes=overhead.most - overhead.usual,
        kept_percent=find_kept_percent(setup, share),
        gathered_bytes=count_gathered(setup, share),
        needed_bytes=share.total_bytes + overhead.usual,
        free_bytes=device.usable_bytes - share.total_bytes,
        largest_batch=find_largest(measure_slack, None, LARGEST_BATCH),
    )
    return fit if fit.fits else fit._replace(suggestions=list_suggestions(setup, device, find_share))


def estimate_overhead(setup: Setup, share: TrainingShare, device: Device) -> Overhead:
    """What a training takes besides what is counted. Implementations keep more than the backward pass needs, such as
    norms in FP32 and copies for dropout; some compute the loss in chunks, so that there are no logits of all tokens."""
    assumed = device.assume_overhead()
    least = assumed.least - share.activations_bytes + share.saved_bytes + share.recomputed_bytes
    kept = share.activations_bytes * find_kept_percent(setup, share) // 100
    return assumed._replace(least=least, most=assumed.most + kept + count_gathered(setup, share))


def count_gathered(setup: Setup, share: TrainingShare) -> int:
    """Bytes of frozen weights that FSDP may hold undivided: in flat parameters with trained ones, they have gradients,
    too. LitGPT takes 1.6 times all weights on each of two GPUs (tests/data/logged/training.csv)."""
    frozen = share.weights_bytes - share.adapter_bytes
    return frozen * setup.dp if setup.zero == 3 and setup.dp > 1 and not setup.offload_params else 0


def find_kept_percent(setup: Setup, share: TrainingShare) -> int:
    """What implementations may keep besides the activations, in percent of these.

    With checkpointing of whole layers nothing is kept beside their inputs, which PEFT has in FP32 if the weights are
    quantised.
    """
    if setup.weights not in PLAIN_WEIGHTS:
        return KEPT_BESIDES_PACKED
    counted = share.activations_bytes - (share.saved_bytes if setup.checkpointing == "full" else 0)
    return KEPT_BESIDES * counted // max(1, share.activations_bytes)


def judge_training(setup: Setup, share: TrainingShare, device: Device) -> str:
    """One of devices.VERDICTS."""
    return judge(share.total_bytes, estimate_overhead(setup, share, device), device.budget_bytes)


def list_suggestions(
    setup: Setup, device: Device, find_share: Callable[[Setup], TrainingShare]
) -> tuple[Suggestion, ...]:
    """Changes of the setup that make it fit, the cheapest first, none of which has one before it and more."""
    found: list[Suggestion] = []
    for changed in list_savings(setup):
        options = find_changes(setup, changed)
        if any(suggestion.options.items() <= options.items() for suggestion in found):
            continue
        share = find_share(changed)
        if judge_training(changed, share, device) == FITS:
            found.append(Suggestion(options, device.usable_bytes - share.total_bytes))
    return tuple(found)


def list_savings(setup: Setup) -> list[Setup]:
    sharded = setup._replace(zero=3) if setup.dp > 1 else setup
    recomputed = setup._replace(checkpointing="full")
    both = sharded._replace(checkpointing="full")
    candidates = [setup._replace(flash_attention=True), sharded, recomputed, both, both._replace(batch=1)]
    candidates.append(both._replace(batch=1, optimizer="adamw8bit"))
    candidates.append(both._replace(batch=1, zero=max(both.zero, 2), offload_optimizer="cpu"))
    return [candidate for candidate in candidates if candidate != setup]


def find_changes(setup: Setup, changed: Setup) -> Mapping[str, object]:
    """The options that differ: {"zero": 3, "checkpointing": "full"}."""
    return {name: value for name, value in changed._asdict().items() if value != getattr(setup, name)}
