"""A progress bar on stderr for reads that take longer than a second."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

PATIENCE = 1.0  # seconds before the bar appears


@contextmanager
def progress_callback() -> Iterator[Callable[[int, int], None] | None]:
    """A function to call with (done, total); None if stderr is not a terminal."""
    if not sys.stderr or not sys.stderr.isatty():
        yield None
        return
    import click

    start, bar, position = monotonic(), None, 0

    def report(done: int, total: int) -> None:
        nonlocal bar, position
        if bar is None and monotonic() - start > PATIENCE:
            new_bar: Any = click.progressbar(length=total, label="headers", file=sys.stderr)
            bar, position = new_bar.__enter__(), 0
        if bar is not None:
            bar.update(done - position)
            position = done

    try:
        yield report
    finally:
        if bar is not None:
            bar.__exit__(None, None, None)
