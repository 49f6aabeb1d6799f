"""What a fit says in words: the verdict with its margin, and what makes it fit."""

from __future__ import annotations

from collections.abc import Sequence

from paramcount.costs.devices import DOES_NOT_FIT, FITS, MARGIN_DIVISOR, PADDING_DIVISOR
from paramcount.costs.fit import Fit, Suggestion
from paramcount.costs.training_fit import TrainingFit
from paramcount.errors import join_words
from paramcount.formats.weights import list_padded_labels
from paramcount.output.numbers import format_bytes


def describe_verdict(fit: Fit | TrainingFit, devices: str, capacity: str) -> str:
    """The first line: "fits 1 × RTX 4090: 7.62 GB free"."""
    each = describe_each(fit)
    margin = f"{format_bytes(abs(fit.free_bytes))} {'free' if fit.free_bytes >= 0 else 'short'}{each}"
    if fit.verdict == FITS:
        return f"fits {devices}: {margin}"
    if fit.verdict == DOES_NOT_FIT:
        return f"does not fit {devices}: needs {format_bytes(fit.needed_bytes)}{each}, {capacity} available; {margin}"
    reason = f"less than the margin of {describe_margin(fit)}"
    if -fit.free_bytes >= fit.margin_bytes:
        reason = f"but the overhead of {format_bytes(fit.overhead_bytes)} is assumed"
    return f"too close to call on {devices}: {margin}, {reason}"


def describe_margin(fit: Fit | TrainingFit) -> str:
    """What must be free or short for an answer: "8.55 GB (10% of the memory)"."""
    parts = [f"{100 // MARGIN_DIVISOR}% of the memory"]
    if fit.margin_bytes > -(-fit.memory_bytes // MARGIN_DIVISOR):
        parts.append(f"{100 // PADDING_DIVISOR}% of the {join_words(list_padded_labels(), 'and')} weights")
    return f"{format_bytes(fit.margin_bytes)} ({' + '.join(parts)})"


def describe_each(fit: Fit | TrainingFit) -> str:
    return " per GPU" if fit.devices > 1 else ""


def describe_minimum(fit: Fit) -> str:
    """Such as "minimum: 4 GPUs (TP=4)"."""
    if fit.fewest_devices is None:
        usable = int(fit.memory_bytes * fit.utilization) - fit.overhead_bytes
        return "more than 1,024 GPUs needed" if usable > fit.margin_bytes else "the overhead leaves no memory to a GPU"
    layout = f" ({fit.fewest_parallelism})" if fit.fewest_parallelism else ""
    return f"minimum: {fit.fewest_devices:,} GPU{'s' if fit.fewest_devices > 1 else ''}{layout}"


def describe_suggestions(suggestions: Sequence[Suggestion]) -> str:
    """Such as "fits with --kv-dtype fp8 or --batch 8"; "" for none, and for other numbers of GPUs."""
    texts = [describe_options(suggestion) for suggestion in suggestions if "tp" not in suggestion.options]
    return f"fits with {join_words(texts, 'or')}" if texts else ""


def describe_options(suggestion: Suggestion) -> str:
    """The options of the command line: "--kv-dtype fp8 --batch 8"."""
    flags = ((f"--{name.replace('_', '-')}", value) for name, value in suggestion.options.items())
    return " ".join(flag if value is True else f"{flag} {value}" for flag, value in flags)
