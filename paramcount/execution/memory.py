"""The memory that a forward pass needs, and the memory that there is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from math import prod
from pathlib import Path

from paramcount.errors import ParamcountError
from paramcount.flow import Cache, Data, Size, list_scored
from paramcount.flow.operation import Form
from paramcount.flow.walk import list_steps
from paramcount.output.numbers import format_bytes

BYTES = 4  # of a float32
TEMPORARIES = 3  # arrays of the size of the attention scores at once
COPIES = 2  # of the largest weight while it is widened


def estimate_memory(out: Data, n_tokens: int, n_past: int = 0, *, keeps_steps: bool = False) -> int:
    """The bytes that a pass needs at most: the values of one layer, caches, and the largest weight.

    Weights that are mapped into memory are not included, because the system can drop them. `keeps_steps`: whether all
    intermediate values are kept.
    """
    steps = list_steps(out)
    largest = max((prod(map(int, w.shape)) for data, *_ in steps for w in data.weights), default=0)
    scores = [
        measure_scores(data, n_tokens, n_past) for data, *_ in steps if data.operation.form is Form.ATTENTION_WEIGHTS
    ]
    kept = sum(
        measure(data.shape, n_past + n_tokens) * prod(r.count for r in repeats if r.axis == "layer")
        for data, _, repeats, _ in steps
        if isinstance(data.operation, Cache)
    )
    if keeps_steps:
        kept += sum(
            (measure_scores(data, n_tokens, n_past) if list_scored(data) else measure(data.shape, n_tokens))
            * prod(r.count for r in repeats if r.axis == "layer")
            for data, _, repeats, _ in steps
        )
    elements: int = measure_body(out, (), n_tokens) + kept + COPIES * largest + TEMPORARIES * max(scores, default=0)
    return BYTES * elements


def measure(shape: Iterable[Size], n_tokens: int) -> int:
    """The elements of data. A size that depends on the input counts as the number of tokens."""
    return prod(int(n) if isinstance(n, int) else n_tokens for n in shape)


def measure_scores(scores: Data, n_tokens: int, n_past: int) -> int:
    return prod(map(int, scores.shape[:-2])) * n_tokens * (n_tokens + n_past)


def measure_body(out: Data, inputs: tuple[Data, ...], n_tokens: int) -> int:
    """The elements of all values inside one body, and of the largest body inside it."""
    seen: set[int] = {id(data) for data in inputs}
    waiting, total, inner = [out], 0, 0
    while waiting:
        data = waiting.pop()
        if id(data) in seen:
            continue
        seen.add(id(data))
        total += 0 if list_scored(data) else measure(data.shape, n_tokens)  # scores are freed
        inner = max([inner, *(measure_body(body.out, body.inputs, n_tokens) for body in data.bodies)])
        waiting += data.inputs
    return total + inner


def check_memory(needed: int, where: str) -> None:
    """Raises: ParamcountError if a pass needs more memory than there is."""
    available = find_available_memory()
    if available is not None and needed > available:
        found = f"needs {format_bytes(needed)} of memory, but {format_bytes(available)} is available"
        raise ParamcountError(found, where=where, expected="a shorter text or a smaller model")


def find_available_memory() -> int | None:
    """The bytes that a process can use without swapping; None if the system does not say."""
    limits = []
    for path, pattern, unit in (
        ("/sys/fs/cgroup/memory.max", r"(\d+)", 1),
        ("/proc/meminfo", r"^MemAvailable: *(\d+)", 1024),
    ):
        with suppress(OSError, ValueError):
            if found := re.search(pattern, Path(path).read_text(encoding="ascii"), re.MULTILINE):
                limits.append(unit * int(found[1]))
    if not limits:
        with suppress(AttributeError, OSError, ValueError):
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(limits, default=None)
