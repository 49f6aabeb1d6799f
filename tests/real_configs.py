"""Configs that people keep in their repositories: a sample that was drawn by a rule before anybody looked at it.

tests/data/real_configs.json has the config.json of each with its source, and what is expected: `total`, which
transformers 5.23.0 builds as `class`, parameters that no forward pass uses included; `refused`, the reason; or
`unchecked`, why there is no total to compare with. docs/accuracy.md has the rule.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent / "data" / "real_configs.json"


@cache
def load_real_configs() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(PATH.read_text(encoding="utf-8"))
    return rows


def make_table() -> str:
    """What is refused and why, as Markdown, most frequent first."""
    rows = load_real_configs()
    reasons = Counter(row["refused"] for row in rows if "refused" in row)
    lines = ["| refused | configs |", "|---|---:|"]
    lines += [f"| {reason} | {n} |" for reason, n in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))]
    lines.append(f"| **all** | **{reasons.total()} of {len(rows)}** |")
    return "\n".join(lines)
