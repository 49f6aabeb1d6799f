"""What a run of the command line leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Run(NamedTuple):
    code: int
    out: str
    err: str


Runner = Callable[..., Run]
