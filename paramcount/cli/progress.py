"""A progress bar on stderr for what takes longer than a second."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

PATIENCE = 1.0  # seconds


@contextmanager
def watching() -> Iterator[Callable[[int, int], None] | None]:
    """What is to be called with how much is done and how much there is. None where nobody looks: stderr is no terminal."""
    if not sys.stderr or not sys.stderr.isatty():
        yield None
        return
    import click

    began, bar, reached = monotonic(), None, 0

    def watch(done: int, all: int) -> None:
        nonlocal bar, reached
        if bar is None and monotonic() - began > PATIENCE:
            shown: Any = click.progressbar(length=all, label="headers", file=sys.stderr)
            bar, reached = shown.__enter__(), 0
        if bar is not None:
            bar.update(done - reached)
            reached = done

    try:
        yield watch
    finally:
        if bar is not None:
            bar.__exit__(None, None, None)
