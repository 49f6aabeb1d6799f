"""What a run of the command line leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import paramcount


class Run(NamedTuple):
    code: int
    out: str
    err: str


Runner = Callable[..., Run]
MAIN = "from paramcount.cli import main; main()"
HOME = str(Path(paramcount.__file__).parents[1])


def run_process(
    *args: str | bytes, code: str = MAIN, stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE, **env: str
) -> subprocess.CompletedProcess[bytes]:
    """The command line, or another program, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": HOME, **env}
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(command, stdout=stdout, stderr=stderr, timeout=60, check=False, env=environment)
