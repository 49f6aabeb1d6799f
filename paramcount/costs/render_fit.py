"""What a fit says in words: the verdict with its margin, and what makes it fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paramcount.costs.devices import DOES_NOT_FIT, FITS, MARGIN_DIVISOR, PADDING_DIVISOR
from paramcount.costs.engines.records import Share
from paramcount.costs.fit import Fit, Suggestion
from paramcount.costs.training.fit import TrainingFit
from paramcount.errors import join_words
from paramcount.formats.weights import list_padded_labels
from paramcount.output.numbers import format_bytes

MOST_LINES = 16  # of devices, which llama.cpp has at most


def describe_verdict(fit: Fit | TrainingFit, devices: str, capacity: str) -> str:
    """The first line: "fits on 1 × RTX 4090: 7.12 GB free"."""
    each = describe_each(fit)
    margin = f"{format_bytes(abs(fit.free_bytes))} {'free' if fit.free_bytes >= 0 else 'short'}{each}"
    if fit.verdict == FITS:
        return f"fits on {devices}: {margin}"
    if fit.verdict == DOES_NOT_FIT:
        if isinstance(fit, Fit) and fit.needed_bytes <= int(fit.memory_bytes * fit.utilization):  # its bytes are given
            cached = fit.fullest.kv_cache_bytes + fit.fullest.state_bytes
            given = format_bytes(cached + fit.free_bytes)
            return f"does not fit on {devices}: the cache needs {format_bytes(cached)}{each}; {given} given; {margin}"
        needs = f"needs {format_bytes(fit.needed_bytes)}{each}"
        return f"does not fit on {devices}: {needs}; {capacity} available; {margin}"
    if isinstance(fit, Fit) and fit.overhead_items:  # it is computed, with a spread
        more = f"take {format_bytes(fit.margin_bytes)} more" if fit.free_bytes >= 0 else "take less"
        return f"too close to call on {devices}: {margin}, but the overhead may {more}"
    reason = f"less than the margin of {describe_margin(fit)}"
    if -fit.free_bytes >= fit.margin_bytes:
        reason = f"but the overhead of {format_bytes(fit.overhead_bytes)} is assumed"
    return f"too close to call on {devices}: {margin}, {reason}"


def describe_devices(fit: Fit | TrainingFit) -> str:
    """Such as "8 × H100 SXM" or "one 25.8 GB device"."""
    if not fit.device.endswith(" device"):
        return f"{fit.devices:,} × {fit.device}"
    return f"{fit.devices:,} {fit.device}s" if fit.devices > 1 else f"one {fit.device}"


def describe_margin(fit: Fit | TrainingFit) -> str:
    """What must be free or short for an answer: "8.55 GB (10% of the memory)"."""
    parts = [f"{100 // MARGIN_DIVISOR}% of the memory"]
    if isinstance(fit, TrainingFit):
        parts.append(f"{fit.kept_percent}% of the activations")
        parts += ["frozen weights that FSDP may not divide"] if fit.gathered_bytes else []
    elif fit.margin_bytes > -(-fit.memory_bytes // MARGIN_DIVISOR):
        parts.append(f"{100 // PADDING_DIVISOR}% of the {join_words(list_padded_labels(), 'and')} weights")
    return f"{format_bytes(fit.margin_bytes)} ({' + '.join(parts)})"


def describe_each(fit: Fit | TrainingFit) -> str:
    if isinstance(fit, Fit) and fit.fullest.device is None:
        return " of RAM"
    return " per GPU" if fit.devices > 1 else ""


def describe_shares(fit: Fit) -> list[str]:
    """What lies on each device, if devices hold different layers: "GPU 0: layers 0–31, 4.93 GB weights + …"."""
    if not 1 < len(fit.shares) <= MOST_LINES:
        return []
    return [f"{name_device(share)}: {describe_share(share)}" for share in fit.shares]


def name_device(share: Share) -> str:
    """Such as "GPU 0", "GPUs 8–15" and "CPU"."""
    if share.device is None:
        return "CPU"
    last = share.device + share.devices - 1
    return f"GPU {share.device}" if share.devices == 1 else f"GPUs {share.device}–{last}"


def describe_share(share: Share) -> str:
    """Such as "layers 0–31 and the token embedding: 4.93 GB weights, 1.07 GB KV cache, 0.30 GB overhead"."""
    last = share.first_layer + share.layers - 1
    layers = f"layers {share.first_layer}–{last}" if share.layers > 1 else f"layer {last}" if share.layers else ""
    sizes = (
        (share.weights_bytes, "weights"),
        (share.kv_cache_bytes, "KV cache"),
        (share.state_bytes, "state"),
        (share.draft_weights_bytes + share.draft_cache_bytes, "draft"),
        (share.overhead.usual, "overhead"),
    )
    amounts = ", ".join(f"{format_bytes(size)} {what}" for size, what in sizes if size)
    return ": ".join(filter(None, [join_words([*filter(None, [layers]), *share.extras], "and"), amounts]))


def describe_minimum(fit: Fit) -> str:
    """Such as "minimum: 4 GPUs (TP=4)"."""
    if fit.fewest_devices is None and fit.fullest.device is None:
        return "more GPUs do not help"
    if fit.fewest_devices is None:
        usable = int(fit.memory_bytes * fit.utilization) - fit.overhead_bytes
        more = f"needs more than {fit.most_devices:,} GPUs"
        return more if usable > fit.margin_bytes else "the overhead leaves no memory to a GPU"
    layout = f" ({fit.fewest_parallelism})" if fit.fewest_parallelism else ""
    return f"minimum: {fit.fewest_devices:,} GPU{'s' if fit.fewest_devices > 1 else ''}{layout}"


def describe_suggestions(suggestions: Sequence[Suggestion], *, in_python: bool = False) -> str:
    """Such as "fits with --kv-dtype fp8 or --batch 8"; "" for none, and for other numbers of GPUs."""
    texts = [describe_options(it, in_python=in_python) for it in suggestions if "tp" not in it.options]
    return f"fits with {join_words(texts, 'or')}" if texts else ""


def describe_options(suggestion: Suggestion, *, in_python: bool = False) -> str:
    """The options of the command line, "--kv-dtype fp8 --batch 8", or the arguments "kv_dtype='fp8', batch=8"."""
    if in_python:
        return describe_arguments(suggestion.options)
    if "engine_options" in suggestion.options:
        added = dict(suggestion.options["engine_options"].items())  # type: ignore[attr-defined]
        return " ".join(f"--engine-option {name}={value}" for name, value in added.items())
    flags = ((f"--{name.replace('_', '-')}", value) for name, value in suggestion.options.items())
    return " ".join(flag if value is True else f"{flag} {value}" for flag, value in flags)


def describe_arguments(arguments: Mapping[str, object]) -> str:
    """Keyword arguments of Python.

    >>> describe_arguments({"kv_dtype": "fp8", "batch": 8})
    "kv_dtype='fp8', batch=8"
    """
    values = {name: dict(value) if isinstance(value, Mapping) else value for name, value in arguments.items()}
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
