"""A progress bar on stderr for what takes longer than a second."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic

DELAY = 1.0  # seconds before the bar appears


@contextmanager
def progress_callback(label: str = "reading headers") -> Iterator[Callable[[int, int], None] | None]:
    """A function that shows progress, called with (number done, total number); None if stderr is not a terminal."""
    if not sys.stderr or not sys.stderr.isatty():
        yield None
        return
    import click

    start, position = monotonic(), 0
    update_bar: Callable[[int], object] | None = None

    def report(done: int, total: int) -> None:
        nonlocal update_bar, position
        if update_bar is None and monotonic() - start > DELAY:
            bar = stack.enter_context(click.progressbar(length=total, label=label, file=sys.stderr))
            update_bar = bar.update
        if update_bar is not None:
            update_bar(done - position)
            position = done

    with ExitStack() as stack:
        yield report
