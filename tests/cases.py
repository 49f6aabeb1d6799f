"""Configs of every supported model type as the reference implementation built or refused them: tests/data/cases.json.

`python -m tests.oracle.freeze` writes it. A case holds the config, and either the totals with a digest of every
tensor's name and shape, or that it was refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "data" / "cases.json"


@cache
def load_cases() -> dict[str, list[dict[str, Any]]]:
    """{model type: its cases}. The result is shared: do not change it."""
    found: dict[str, list[dict[str, Any]]] = json.loads(CASES.read_text(encoding="utf-8")) if CASES.exists() else {}
    return found


def hash_shapes(tensors: Mapping[str, tuple[int, ...]], prefix: str) -> str:
    """Names and shapes, whatever their order; a name with the model's own prefix is the same without it."""
    lines = sorted(
        f"{name.removeprefix(prefix)} {'×'.join(map(str, shape))}" for name, shape in tensors.items() if 0 not in shape
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
