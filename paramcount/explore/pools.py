"""Data that a page has once, however often it is used."""

from __future__ import annotations

import json
from typing import Any


class Pool:
    """Data, each once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}  # {JSON: position}

    def add(self, data: Any) -> int:
        """The position of data."""
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        return self.numbers.setdefault(text, len(self.numbers))

    def list_all(self) -> list[Any]:
        return [json.loads(text) for text in self.numbers]
