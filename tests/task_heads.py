"""Classes with the head of another task as the reference implementation built them: tests/data/task_heads.json.

`python -m tests.oracle.freeze --task-heads` writes it. Cases are as in tests/cases.py, by "model_type.Class".
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

TASK_HEADS = Path(__file__).parent / "data" / "task_heads.json"


@cache
def load_task_heads() -> dict[str, list[dict[str, Any]]]:
    """{"model_type.Class": its cases}"""
    found: dict[str, list[dict[str, Any]]] = (
        json.loads(TASK_HEADS.read_text(encoding="utf-8")) if TASK_HEADS.exists() else {}
    )
    return found
