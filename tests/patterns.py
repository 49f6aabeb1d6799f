"""Names written short in data files: `model.layers.{0-31}.mlp.{gate,up}_proj.weight` stands for 64 of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

SPAN = re.compile(r"(\d+)-(\d+)")


def expand_pattern(pattern: str) -> list[str]:
    parts = re.split(r"\{([^}]*)\}", pattern)
    return [
        "".join(words)
        for words in product(*([part] if i % 2 == 0 else list(_list_choices(part)) for i, part in enumerate(parts)))
    ]


def expand_patterns(patterns: Iterable[str]) -> list[str]:
    return [name for pattern in patterns for name in expand_pattern(pattern)]


def _list_choices(words: str) -> Iterator[str]:
    for word in words.split(","):
        if span := SPAN.fullmatch(word):
            width = len(span[1]) if span[1].startswith("0") else 0  # model-{00001-00003}
            yield from (f"{i:0{width}}" for i in range(int(span[1]), int(span[2]) + 1))
        else:
            yield word
