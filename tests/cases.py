"""Configs of every supported model type as the reference implementation built or refused them: tests/data/types.

`python -m tests.oracle.refresh_types` writes them. A case holds the config, and either the totals with a digest of
every tensor's name and shape, or that it was refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from tests.type_files import load_all


def load_cases() -> dict[str, list[dict[str, Any]]]:
    """{model type: its cases}. The result is shared: do not change it."""
    return load_all("cases")


def load_task_heads() -> dict[str, list[dict[str, Any]]]:
    """{"model_type.Class": cases of a class with the head of another task}"""
    tables = load_all("task_heads").items()
    return {f"{name}.{cls}": cases for name, table in tables for cls, cases in table.items()}


def hash_shapes(tensors: Mapping[str, tuple[int, ...]], prefix: str) -> str:
    """Names and shapes, whatever their order; a name with the model's own prefix is the same without it."""
    lines = sorted(
        f"{name.removeprefix(prefix)} {'×'.join(map(str, shape))}" for name, shape in tensors.items() if 0 not in shape
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
