"""What is frozen about one model type: tests/data/types/<model type>.json, one fact per line."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

TYPES = Path(__file__).parent / "data" / "types"


def find_file(name: str) -> Path:
    return TYPES / (re.sub(r"[^\w.-]", "_", name) + ".json")


def load_facts(name: str) -> dict[str, Any]:
    """{kind of fact: what is known}; empty for a model type without a file. The result is shared: do not change it."""
    path = find_file(name)
    return read_file(path) if path.exists() else {}


@cache
def load_all(kind: str) -> dict[str, Any]:
    """{model type: what is known}, of the model types with such a fact. The result is shared: do not change it."""
    found = {facts["model_type"]: facts[kind] for facts in map(read_file, TYPES.glob("*.json")) if kind in facts}
    return dict(sorted(found.items()))


@cache
def read_file(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def save_fact(name: str, kind: str, value: Any) -> None:
    """Write one kind of fact about a model type and leave the others as they are; an empty one is left out."""
    facts = {"model_type": name, **load_facts(name), kind: value}
    facts = {key: facts[key] for key in ("model_type", *sorted(facts.keys() - {"model_type"})) if facts[key]}
    TYPES.mkdir(exist_ok=True)
    find_file(name).write_text(format_facts(facts), encoding="utf-8")
    read_file.cache_clear()
    load_all.cache_clear()


def format_facts(facts: dict[str, Any]) -> str:
    """JSON with a line for each fact, and for each entry of a list or table of them."""
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {format_fact(value)}" for key, value in facts.items()) + "\n}\n"


def format_fact(value: Any) -> str:
    if isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        return "[\n" + ",\n".join(map(format_json, value)) + "\n]"
    if isinstance(value, dict) and any(isinstance(one, dict | list) for one in value.values()):
        return "{\n" + ",\n".join(f"{format_json(key)}: {format_json(one)}" for key, one in value.items()) + "\n}"
    return format_json(value)


def format_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
